"""Checks of memories at high addresses, and of the registers that hold addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from openmxu.arch.config import Config
from openmxu.arch.events import IDENTIFICATION, Command, Counter, Management
from openmxu.arch.isa import Instruction
from openmxu.sim.interpreter import Interpreter
from openmxu.sim.verilated import VerilatedDevice
from openmxu.sim.verilator.library import Result
from tb.directed.timed_programs import host_memory, layers, weight_memory

__all__ = ["check_high_addresses", "check_registers"]

_LOWEST_BIT = 12  # all addresses in the programs are lower


def check_high_addresses(config: Config, options: Mapping[str, object]) -> None:
    """Results do not depend on the base addresses of the memories; every address bit is 1 in one of the runs."""
    programs = [program for name, program in layers(config) if name in ("product", "transfers")]
    expected = list(_run(Interpreter(config), config, programs))
    for bases in _bases(config):
        moved = [[_moved(instruction, *bases) for instruction in program] for program in programs]
        with VerilatedDevice(config, host_base=bases[0], weight_base=bases[1], **options) as device:
            for ours, theirs in zip(_run(device, config, moved), expected, strict=True):
                assert np.array_equal(ours, theirs), f"host memory, with memories at {bases[0]:#x} and {bases[1]:#x}"


def check_registers(config: Config, options: Mapping[str, object]) -> None:
    """Each address register keeps all of its bits, independent of the others and of other accesses."""
    widths = {
        Management.HOST_BASE: config.host_address_width,
        Management.HOST_LIMIT: config.host_address_width + 1,
        Management.WEIGHT_BASE: config.weight_address_width,
        Management.WEIGHT_LIMIT: config.weight_address_width + 1,
    }
    for stalls in (0.0, 0.6):
        with VerilatedDevice(config, stall_probability=stalls, **options) as device:
            _check_registers(device, widths)


def _check_registers(device: VerilatedDevice, widths: Mapping[Management, int]) -> None:
    rng = np.random.default_rng(3)
    model = device._model
    assert not any(device.counters.values()), "counters after a reset"
    device.clear_counters()
    values = dict.fromkeys(widths, 0)
    for round_number in range(40):
        for register, width in widths.items():
            value = int(rng.integers(0, 1 << 63)) << 1 | round_number & 1
            model.write_register(register, value)
            values[register] = value & ((1 << width) - 1)
        assert model.flush(1000) is Result.ENDED
        got = {register: model.read_register(register, 1000)[1] for register in widths}
        assert got == values
    counters = {counter: model.read_register(Management.COUNTERS + counter, 1000)[1] for counter in Counter}
    assert set(counters.values()) == {0}
    for address, expected in ((Management.IDENTIFICATION, IDENTIFICATION), (Management.STATUS, 0), (0xFF, 0)):
        assert model.read_register(address, 1000) == (Result.ENDED, expected), address
    model.write_register(Management.COMMAND, 1 << Command.ACKNOWLEDGE | 1 << Command.CLEAR_FAULT)
    assert model.flush(1000) is Result.ENDED
    assert model.read_register(Management.STATUS, 1000) == (Result.ENDED, 0)


def _bases(config: Config) -> Iterator[tuple[int, int]]:
    highest = max(config.host_address_width, config.weight_address_width)
    for bit in range(_LOWEST_BIT, highest):
        yield tuple(1 << min(bit, width - 1) for width in (config.host_address_width, config.weight_address_width))


def _moved(instruction: Instruction, host_base: int, weight_base: int) -> Instruction:
    values = instruction.values
    moved = {name: base for name, base in (("host", host_base), ("weights", weight_base)) if name in values}
    return instruction.format(**{name: value + moved.get(name, 0) for name, value in values.items()})


def _run(
    device: VerilatedDevice | Interpreter, config: Config, programs: list[list[Instruction]]
) -> Iterator[np.ndarray]:
    for program in programs:
        host = host_memory(config)
        device.execute(program, host, weight_memory(config))
        yield host
