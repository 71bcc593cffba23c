"""Programs of networks on planes compute what the networks define, on machines of any size."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from openmxu.arch import Config
from openmxu.arch.isa import Instruction, Opcode
from openmxu.compiler import CapacityError, compile_network, conv_input, conv_network, evaluate
from openmxu.compiler.ir.fusion import fuse
from openmxu.compiler.ir.network import Network, Port, Tensor
from openmxu.compiler.ir.operations import Convolution, Pooling, Result
from openmxu.compiler.ir.window import Window
from openmxu.compiler.plan.fusion_groups import _Planner
from openmxu.devices import open_device
from openmxu.segments.host_tensor import HostTensor
from tests.compiler.models.plane_networks import differing_planes, random_planes

BENCH = {"kernel": 3, "stride": 1, "pool": 2}


def moved(instructions: tuple[Instruction, ...], opcode: Opcode) -> int:
    """Number of rows transferred by the instructions of one kind."""
    return sum(item["rows"] for item in instructions if item.word & 0xFF == opcode)


def count(instructions: tuple[Instruction, ...], opcode: Opcode) -> int:
    return sum(item.word & 0xFF == opcode for item in instructions)


@pytest.mark.parametrize("seed", range(60))
def test_random_networks_on_random_machines(seed: int) -> None:
    """Tensors that stay in the unified buffer: in groups, image by image, in rows, or hardly a window of them."""
    random = np.random.default_rng(seed)
    config = Config.for_size(
        int(random.choice([2, 4, 8, 16])),
        unified_buffer_rows=int(random.choice([400, 600, 1024, 8192])),
        accumulator_rows=int(random.choice([4, 16, 30, 128, 1024])),
        parameter_sets=int(random.choice([1, 2, 3, 16, 64])),
        weight_queue_depth=int(random.choice([1, 2, 8])),
        command_queue_depth=int(random.choice([2, 4, 8])),
    )
    shape = tuple(int(value) for value in (random.integers(1, 14), random.integers(1, 14), random.integers(1, 10)))
    network = random_planes(random, shape, operations=int(random.integers(1, 6)))
    assert differing_planes(network, config, random, batch=int(random.integers(1, 5))) == 0


@pytest.mark.parametrize("rows", [76, 100, 150, 250, 400, 1000])
def test_one_convolution_in_ever_smaller_buffers(rows: int) -> None:
    """The same image as a whole, in strips of rows, and in strips of columns."""
    config = Config(size=4, activation_lanes=1, unified_buffer_rows=rows, accumulator_rows=32)
    network, values = conv_network(6, 9, 13, 11, **BENCH), conv_input(6, 13, 11)
    program = compile_network(network, config)
    with open_device("interpreter", config) as device:
        assert (program.run(device, values)["y"] == evaluate(network, values)).all()


def test_unified_buffer_too_small() -> None:
    config = Config(size=4, activation_lanes=1, unified_buffer_rows=24)
    with pytest.raises(CapacityError, match=r"node 'conv': unified_buffer_rows is 24, but it needs at least \d+"):
        compile_network(conv_network(6, 9, 13, 11, **BENCH), config)


@pytest.mark.parametrize("rows", [32, 40, 48, 60])
def test_few_planes_of_a_convolution_at_a_time(rows: int) -> None:
    """Planes of the input are read anew for every plane of the output, where not all of them fit."""
    config = Config(size=4, activation_lanes=1, unified_buffer_rows=rows, accumulator_rows=32)
    network, values = conv_network(22, 9, 7, 5, **BENCH), conv_input(22, 7, 5)
    program = compile_network(network, config)
    with open_device("interpreter", config) as device:
        assert (program.run(device, values)["y"] == evaluate(network, values)).all()


def one_pooling(source: Tensor, window: Window, maximum: bool = True) -> Network:
    """A network of one pooling with stride 1."""
    height, width = source.height - window.height + 1, source.width - window.width + 1
    target = Tensor(height, width, source.channels, signed=False)
    pooling = Pooling(
        name="pool",
        sources=("x",),
        target="y",
        result=Result(np.ones((), np.float32), 0, 0, 255),
        window=window,
        maximum=maximum,
        input_signed=False,
    )
    ports = [
        Port(HostTensor(name, "uint8", (t.channels, t.height, t.width), t.channels, "uint8", channels_first=True), name)
        for name, t in (("x", source), ("y", target))
    ]
    return Network((ports[0],), (ports[1],), {"x": source, "y": target}, (pooling,))


@pytest.mark.parametrize("rows", [60, 100, 170, 300])
@pytest.mark.parametrize("maximum", [True, False])
def test_few_planes_of_a_pooling_at_a_time(rows: int, maximum: bool) -> None:
    """The window is the plane, so that neither rows nor columns of it can be left for later."""
    random = np.random.default_rng(rows)
    network = one_pooling(Tensor(6, 7, 30, signed=False), Window(6, 7), maximum)
    config = Config(size=4, activation_lanes=1, unified_buffer_rows=rows)
    values = random.integers(0, 256, (3, 30, 6, 7)).astype(np.uint8)
    program = compile_network(network, config, 2)
    with open_device("interpreter", config) as device:
        assert (program.run(device, values)["y"] == evaluate(network, values)).all()


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_in_tiny_buffers(seed: int) -> None:
    random = np.random.default_rng(1000 + seed)
    rows = int(random.choice([120, 160, 200, 260]))
    config = Config.for_size(4, unified_buffer_rows=rows, accumulator_rows=int(random.choice([16, 30, 256])))
    shape = tuple(int(value) for value in (random.integers(4, 40), random.integers(1, 9), random.integers(1, 9)))
    network = random_planes(random, shape, operations=int(random.integers(1, 5)))
    assert differing_planes(network, config, random, batch=int(random.integers(1, 3))) == 0


def test_table_larger_than_the_unified_buffer() -> None:
    config = Config(size=4, activation_lanes=1, unified_buffer_rows=64)
    network = conv_network(3, 4, 4, 4, kernel=1, stride=1, pool=1)
    operation = network.operations[0]
    result = dataclasses.replace(operation.result, table=np.zeros(256, np.uint8))
    network = dataclasses.replace(network, operations=(dataclasses.replace(operation, result=result),))
    with pytest.raises(CapacityError, match="unified_buffer_rows is 64, but parameters and tables alone need 72"):
        compile_network(network, config)


def test_tensor_of_too_many_rows() -> None:
    """It is refused before a program of as many instructions is made."""
    network = one_pooling(Tensor(4000, 2500, 3, signed=False), Window(2, 1))
    with pytest.raises(CapacityError, match="node 'pool': a tensor of 10,000,000 rows is too large"):
        compile_network(network, Config(size=4, activation_lanes=1))


def test_cuts_that_do_not_fit_are_passed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only some parts are made of a cut whose parts are too large, however many there are."""
    made = []
    of_parts = _Planner._of_parts
    monkeypatch.setattr(_Planner, "_of_parts", lambda *given: made.append(len(given[2])) or of_parts(*given))
    config = Config(size=4, activation_lanes=1, unified_buffer_rows=64)
    compile_network(one_pooling(Tensor(40, 60, 30, signed=False), Window(2, 1)), config)
    assert len(made) == 1


def test_everything_is_transferred_once() -> None:
    """If the tensors of a convolution fit, each row of input, parameters and output is transferred once."""
    config = Config.for_size(16)
    program = compile_network(conv_network(64, 64, 32, 32, **BENCH), config)
    assert moved(program.instructions, Opcode.READ_HOST_MEMORY) == 4 * 1024 + 4 * 8
    assert moved(program.instructions, Opcode.WRITE_HOST_MEMORY) == 4 * 256
    assert program.multiply_adds == 9 * 64 * 64 * 1024


def test_pooling_needs_no_separate_pass() -> None:
    config = Config.for_size(16)
    network = conv_network(64, 64, 32, 32, **BENCH)
    assert len(fuse(network, config).operations) == 1
    instructions = compile_network(network, config).instructions
    convolutions = count(instructions, Opcode.CONVOLVE)
    # One Convolve for each kernel position, input plane, output tile and band; one Activate for each tile and band.
    assert convolutions == 9 * 4 * count(instructions, Opcode.ACTIVATE)
    assert not any(item["from_unified_buffer"] for item in instructions if item.word & 0xFF == Opcode.ACTIVATE)


def test_computing_begins_when_little_of_the_input_is_read() -> None:
    config = Config.for_size(16)
    instructions = compile_network(conv_network(64, 64, 32, 32, **BENCH), config).instructions
    first = next(index for index, item in enumerate(instructions) if item.word & 0xFF == Opcode.CONVOLVE)
    needed = instructions[first]["unified_buffer"]
    reads = [item for item in instructions[:first] if item.word & 0xFF == Opcode.READ_HOST_MEMORY]
    assert reads[0]["unified_buffer"] == needed
    assert reads[0]["rows"] <= 4 * 32
    # A queue full of reads would delay the multiplications behind it.
    assert len(reads) < config.command_queue_depth


def test_average_of_a_convolution_is_not_taken_of_its_sums() -> None:
    """The result of the convolution is requantized first, as in the model."""
    config = Config.for_size(4)
    random = np.random.default_rng(11)
    while True:
        network = random_planes(random, (6, 6, 3), 3)
        kinds = [type(operation).__name__ for operation in network.operations]
        if kinds[:2] == ["Convolution", "Pooling"] and not network.operations[1].maximum:
            break
    assert [type(operation).__name__ for operation in fuse(network, config).operations][:2] == kinds[:2]


@pytest.mark.parametrize("padding", [0, 1])
def test_images_with_one_row_of_outputs_share_instructions(padding: int) -> None:
    """A window as high as the plane: one Convolve per position for the whole batch, unless there is padding."""
    window = Window(height=4, width=2, stride_x=2, left=padding)
    layer = Convolution(
        name="layer",
        sources=("x",),
        target="y",
        weights=np.random.default_rng(0).integers(-128, 128, (7, 20, 4, 2)).astype(np.int16),
        bias=np.arange(7, dtype=np.int32),
        input_signed=False,
        zero_point=7,
        result=Result(np.float32(0.001), 100, 0, 255),
        window=window,
    )
    width = window.outputs(4, 6)[1]
    network = Network(
        inputs=(Port(HostTensor("x", "uint8", (20, 4, 6), 20, "uint8", channels_first=True), "x"),),
        outputs=(Port(HostTensor("y", "uint8", (7, 1, width), 7, "uint8", channels_first=True), "y"),),
        tensors={"x": Tensor(4, 6, 20, False), "y": Tensor(1, width, 7, False)},
        operations=(layer,),
    )
    config = Config.for_size(8)
    program = compile_network(network, config, batch=5)
    positions = 4 * 2 * 3  # three planes of eight channels
    assert count(program.instructions, Opcode.CONVOLVE) == positions * (5 if padding else 1)
    values = np.random.default_rng(1).integers(0, 256, (11, 20, 4, 6)).astype(np.uint8)
    with open_device("interpreter", config) as device:
        assert (program.run(device, values)["y"] == evaluate(network, values)).all()
