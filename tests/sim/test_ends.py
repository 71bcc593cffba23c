"""Instructions end before their last row is written, but nobody sees an older row."""

from __future__ import annotations

import numpy as np
import pytest

from openmxu import Config
from openmxu.arch.isa import Instruction
from openmxu.assembler import assemble
from openmxu.sim.interpreter import Interpreter
from openmxu.sim.verilated import VerilatedDevice

CONFIG = Config(size=16, activation_lanes=4)
"""Large enough for sums to be written long after the first column's."""

ROWS = 64
HOST = ROWS * CONFIG.size

BEGIN = f"""
    read_host_memory unified_buffer=0, rows={ROWS}, host=0
    set_configuration register=LOAD_PARAMETERS, unified_buffer=0, count=1
    read_weights tiles=2
    matrixmultiply next_tile, unified_buffer=0, accumulator=0, rows=8
    synchronize units=31
"""

MULTIPLICATION = "matrixmultiply next_tile, unified_buffer={gap}, accumulator=20, rows={rows}"
ACTIVATION = "activate unified_buffer=100, source={gap}, rows={rows}, output=INT32"

PAIRS = {
    "sums, activated": (MULTIPLICATION, "activate unified_buffer=200, source={sum}, rows=1, output=INT32"),
    "results, multiplied": (ACTIVATION, "matrixmultiply unified_buffer={result}, accumulator=40, rows=1"),
    "results, written": (ACTIVATION, f"write_host_memory unified_buffer={{result}}, rows=1, host={HOST}"),
    "results, activated": (
        ACTIVATION,
        "activate from_unified_buffer, unified_buffer=200, source={result}, rows=1, output=INT32",
    ),
}
"""An instruction, and another one that reads its last row."""


def program(first: str, second: str, rows: int, gap: int) -> list[Instruction]:
    """The two with some cycles between them; the row is then written to host memory from wherever it is."""
    numbers = {"rows": rows, "gap": gap, "sum": 19 + rows, "result": 99 + 4 * rows}
    end = f"""
        activate unified_buffer=300, source=40, rows=1, output=INT32
        write_host_memory unified_buffer=300, rows=4, host={HOST + 16}
        write_host_memory unified_buffer=200, rows=4, host={HOST + 80}
        halt
    """
    lines = [BEGIN, first.format(**numbers), "nop\n" * gap, second.format(**numbers), end]
    return assemble("\n".join(lines), CONFIG)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("name", PAIRS)
def test_last_row_is_read_as_soon_as_possible(name: str, rows: int) -> None:
    random = np.random.default_rng(1)
    host = np.zeros(HOST + 256, np.uint8)
    host[: 4 * CONFIG.size] = random.integers(0, 256, 4 * CONFIG.size)
    weights = random.integers(0, 256, 2 * CONFIG.tile_bytes, np.uint8)
    reference = Interpreter(CONFIG)
    with VerilatedDevice(CONFIG) as device:
        for gap in range(8):
            host[:HOST] = random.integers(0, 256, HOST)
            ours, expected = host.copy(), host.copy()
            device.execute(program(*PAIRS[name], rows, gap), ours, weights)
            reference.execute(program(*PAIRS[name], rows, gap), expected, weights)
            np.testing.assert_array_equal(ours, expected, err_msg=f"{gap} instructions between")
