"""Chunks of work for the activation unit are placed between the bands of a convolution."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import openmxu
from openmxu.arch import Config
from openmxu.arch.isa import Opcode
from openmxu.compiler import compile_network, evaluate
from openmxu.compiler.emit.deferred_activations import Chunk, DeferredActivations, Touch
from openmxu.compiler.emit.tasks import Rows
from openmxu.compiler.ir.network import Network, Port, Tensor
from openmxu.compiler.ir.operations import Combination, Convolution, Result
from openmxu.segments.host_tensor import HostTensor
from tests.compiler.models.plane_networks import differing_planes
from tests.compiler.models.small_networks import residual_block

ROWS = 100


def touch(reads: tuple[int, int] | None, writes: tuple[int, int] | None) -> Touch:
    """A touch of two ranges of rows, each given by first row and count."""
    return Touch(*((Rows(*pair),) if pair else () for pair in (reads, writes)))


def emitted(chunks: list[Touch], *steps: list[Touch]) -> list[list[int]]:
    """The numbers of the chunks emitted at each step; a step is given by the work still ahead."""
    order: list[int] = []
    deferred = DeferredActivations(
        [Chunk(item, functools.partial(order.append, n)) for n, item in enumerate(chunks)], ROWS
    )
    result = []
    for ahead in steps:
        deferred.advance(ahead)
        result.append(order.copy())
        order.clear()
    return result


@pytest.mark.parametrize(
    ("band", "waits"),
    [
        (touch(None, (9, 5)), True),  # writes what the chunk reads
        (touch(None, (29, 5)), True),  # writes what the chunk writes
        (touch((29, 5), None), True),  # reads what the chunk writes
        (touch((9, 5), None), False),  # reads what the chunk reads
        (touch((20, 10), (30, 10)), True),
        (touch((30, 10), (20, 0)), False),
    ],
)
def test_rows_of_bands(band: Touch, waits: bool) -> None:
    chunk = touch((10, 10), (29, 1))
    assert emitted([chunk], [band], []) == [[] if waits else [0], [0] if waits else []]


def test_chunks_wait_for_chunks() -> None:
    """The second chunk reads results of the first one; the third one is independent of both."""
    chunks = [touch((0, 10), (10, 10)), touch((10, 10), (20, 10)), touch((40, 10), (50, 10))]
    assert emitted(chunks, [touch(None, (5, 1))], []) == [[2], [0, 1]]


def layers_of_activations(config: Config, batch: int) -> list[int]:
    """For each Activate of a residual block, in order, the number of its operation."""
    program = compile_network(residual_block(), config, batch=batch, effort=0)
    pairs = zip(program.instructions, program.layer_numbers, strict=True)
    return [int(layer) for item, layer in pairs if item.word & 0xFF == Opcode.ACTIVATE]


CONFIG = Config(size=4, activation_lanes=1, accumulator_rows=256)


def test_sums_of_one_image_while_the_array_works_on_the_next() -> None:
    """Operation 1 is the second convolution, operation 2 the sum of its result and the input."""
    order = layers_of_activations(CONFIG, batch=3)
    assert order.index(2) < len(order) - 1 - order[::-1].index(1)
    assert order.count(2) >= 3


@pytest.mark.parametrize("rows", [1100, 1600, 2200, 3200, 8192])
@pytest.mark.parametrize("sets", [1, 2, 64])
def test_results_are_the_same(rows: int, sets: int) -> None:
    """With all rows of the unified buffer in use, and also if the parameter sets of one operation replace others."""
    config = CONFIG.replace(unified_buffer_rows=rows, parameter_sets=sets)
    assert differing_planes(residual_block(), config, np.random.default_rng(rows), batch=3) == 0


def test_parameters_are_loaded_once() -> None:
    """Without room for the parameters of two operations, these do not alternate."""
    order = layers_of_activations(CONFIG.replace(parameter_sets=1), batch=3)
    assert order == sorted(order)


def factor_behind_an_output() -> Network:
    """x → s → t, and y = s · z; t is an output and read by nothing, so that z and y may take its rows."""
    shapes = {"x": 8, "z": 8, "s": 8, "t": 20, "y": 8}
    weights = np.random.default_rng(0).integers(-100, 101, (20, 8, 1, 1)).astype(np.int16)

    def product(source: str, target: str) -> Convolution:
        outputs = shapes[target]
        return Convolution(
            name=target,
            sources=(source,),
            target=target,
            result=Result(np.full(outputs, 0.01, np.float32), 0, -128, 127),
            weights=weights[:outputs],
            bias=np.zeros(outputs, np.int32),
            input_signed=True,
            zero_point=0,
        )

    factor = Combination(
        name="y",
        sources=("s", "z"),
        target="y",
        result=Result(np.asarray(0.01, np.float32), 0, -128, 127),
        multiplies=True,
        input_signed=(True, True),
        zero_points=(0, 0),
    )
    ports = {name: Port(HostTensor(name, "int8", (shapes[name],), shapes[name], "int8"), name) for name in "xzty"}
    tensors = {name: Tensor(1, 1, channels, True) for name, channels in shapes.items()}
    operations = (product("x", "s"), product("s", "t"), factor)
    return Network((ports["x"], ports["z"]), (ports["t"], ports["y"]), tensors, operations)


def test_what_waits_to_be_written_is_not_overwritten_by_a_read() -> None:
    """Short planes wait for their neighbours; a chunk that may come before these reads its source meanwhile."""
    network, random = factor_behind_an_output(), np.random.default_rng(1)
    for size in (4, 8):
        config = Config.for_size(size)
        inputs = {name: random.integers(-128, 128, (1, 8)).astype(np.int8) for name in "xz"}
        program = compile_network(network, config, batch=1, effort=0)
        expected = evaluate(network, inputs)
        with openmxu.open_device("interpreter", config) as device:
            results = program.run(device, inputs)
        for name, array in expected.items():
            np.testing.assert_array_equal(results[name], array)
