"""Programs compute what their networks define, with any shapes and on machines of any size."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from openmxu.arch import Config
from openmxu.arch.events import Counter
from openmxu.arch.isa import Opcode
from openmxu.compiler import CapacityError, compile_network, evaluate, gemm, gemm_input, gemm_network
from openmxu.devices import open_device
from tests.compiler.models.networks import differing, random_network, random_rows

AWKWARD = (1, 2, 3, 7, 8, 9, 16, 31, 64, 100)


@pytest.mark.parametrize("size", [2, 4, 8, 16, 32])
@pytest.mark.parametrize("rows", [1, 5, 122])
def test_awkward_shapes(size: int, rows: int) -> None:
    """One layer: single values, less than a tile, slightly more than a tile, tapered, and started in parts."""
    random = np.random.default_rng((size, rows))
    for inputs, outputs in ((1, 1), (3, 1), (1, size + 1), (size - 1, size), (2 * size + 1, 3 * size - 1)):
        network = random_network(random, (inputs, outputs))
        assert differing(network, Config.for_size(size), random_rows(random, network, rows)) == 0


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_on_random_machines(seed: int) -> None:
    """Chains of layers with buffers that hold everything, blocks, single planes, or hardly a row."""
    random = np.random.default_rng(seed)
    size = int(random.choice([2, 4, 8, 16, 32]))
    config = Config.for_size(
        size,
        unified_buffer_rows=int(random.choice([16, 32, 64, 128, 512, 8192])),
        accumulator_rows=int(random.choice([4, 8, 30, 128, 1024])),
        parameter_sets=int(random.choice([1, 2, 3, 16, 64])),
        weight_queue_depth=int(random.choice([1, 2, 8])),
        command_queue_depth=int(random.choice([2, 4, 8])),
    )
    dimensions = tuple(int(random.choice(AWKWARD)) for _ in range(random.integers(2, 5)))
    network = random_network(random, dimensions)
    rows = random_rows(random, network, int(random.choice([1, 2, 5, 17, 40, 100, 200])))
    assert differing(network, config, rows) == 0


@pytest.mark.parametrize("unified_buffer_rows", [16, 64, 512])
def test_input_larger_than_the_unified_buffer(unified_buffer_rows: int) -> None:
    random = np.random.default_rng(unified_buffer_rows)
    network = random_network(random, (700, 20))
    config = Config(size=4, activation_lanes=1, unified_buffer_rows=unified_buffer_rows, accumulator_rows=16)
    assert differing(network, config, random_rows(random, network, 30)) == 0


def test_weights_that_do_not_fit_a_byte() -> None:
    """The extremes of uint8 weights with zero points 0 and 255 in different columns need three tiles each."""
    random = np.random.default_rng(0)
    network = random_network(random, (20, 12))
    layer = network.operations[0]
    layer.weights[::2], layer.weights[1::2] = 255, -255
    assert differing(network, Config(), random_rows(random, network, 9)) == 0


def test_unified_buffer_too_small() -> None:
    config = Config(size=4, activation_lanes=1, unified_buffer_rows=8, unified_buffer_banks=1)
    with pytest.raises(CapacityError, match="unified_buffer_rows is 8, but parameters and tables alone need 8"):
        gemm(4, 4, 4, config)


def test_host_address_width_too_small() -> None:
    with pytest.raises(CapacityError, match="bytes of host memory, but host_address_width 16 reaches 65536"):
        gemm(2000, 64, 8, Config(host_address_width=16))


@pytest.mark.parametrize(("batch", "error"), [(0, ValueError), (2.5, TypeError), (True, TypeError)])
def test_batch_must_be_a_positive_int(batch: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="batch must be"):
        compile_network(gemm_network(4, 4, 4), Config(), batch)


def test_gemm_dimensions_must_be_positive() -> None:
    with pytest.raises(ValueError, match="at least 1, not 4 × 0 × 4"):
        gemm(4, 0, 4, Config())


def test_intermediate_tensors_stay_in_the_unified_buffer() -> None:
    """The host transfers of a chain are the input, the parameters and the output, but no intermediate tensors."""
    network = random_network(np.random.default_rng(1), (16, 64, 64, 8))
    program = compile_network(network, Config(), 40)
    moved = {
        opcode: sum(item["rows"] for item in program.instructions if item.word & 0xFF == opcode)
        for opcode in (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY)
    }
    parameter_rows = 8 * (8 + 8 + 1)
    output_rows = 40 * (4 if network.operations[-1].result is None else 1)
    assert moved == {Opcode.READ_HOST_MEMORY: 2 * 40 + parameter_rows, Opcode.WRITE_HOST_MEMORY: output_rows}


def test_input_is_read_while_it_is_multiplied() -> None:
    """No run of host reads is longer than the queue, because it would delay the multiplications behind it."""
    program = gemm(512, 512, 512, Config.for_size(16))
    transfers = [item.word & 0xFF for item in program.instructions if item.word & 0xFF != Opcode.SET_CONFIGURATION]
    runs = [len(list(run)) for opcode, run in itertools.groupby(transfers) if opcode == Opcode.READ_HOST_MEMORY]
    assert max(runs) <= Config().command_queue_depth


def test_utilization_on_the_hardware() -> None:
    config = Config()
    program = gemm(64, 64, 64, config)
    rows = gemm_input(64, 64)
    with open_device("verilator", config) as device:
        device.clear_counters()
        result = program.run(device, rows)["y"]
        cycles = device.counters[Counter.CYCLES]
    assert (result == evaluate(gemm_network(64, 64, 64), rows)).all()
    assert program.multiply_adds / (config.size**2 * cycles) > 0.9
