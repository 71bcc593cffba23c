"""Every instruction of a program is assigned to its layer."""

from __future__ import annotations

import numpy as np

import openmxu
from openmxu.arch.isa import Opcode
from openmxu.compiler import compile_network, conv_network
from openmxu.compiler.emit.list_scheduler import list_schedule
from openmxu.compiler.emit.tasks import Rows, TaskList, WeightTile
from openmxu.compiler.emit.weights import ByteFormat
from openmxu.layer import Layer
from openmxu.program import Program
from tests.compiler.models.graphs import constants, dequantize, node, quantize
from tests.compiler.models.images import image_model, parameters
from tests.compiler.models.networks import random_network

CONFIG = openmxu.Config(size=4, unified_buffer_rows=512, accumulator_rows=64, activation_lanes=1)


def instructions(program: Program, layer: int, *opcodes: Opcode) -> list:
    """Instructions of a layer, either all or those with some opcodes."""
    pairs = zip(program.instructions, program.layer_numbers, strict=True)
    return [item for item, number in pairs if number == layer and (not opcodes or item.word & 0xFF in opcodes)]


def test_chain() -> None:
    rows, widths = 40, (9, 6, 13)
    network = random_network(np.random.default_rng(3), widths)
    program = compile_network(network, CONFIG, rows)
    assert program.layers == (
        Layer("layer0", "product", rows * 9 * 6),
        Layer("layer1", "product", rows * 6 * 13),
    )
    assert sum(layer.multiply_adds for layer in program.layers) == program.multiply_adds
    for layer, (planes, tiles) in enumerate([(3, 2), (2, 4)]):
        multiplied = sum(item["rows"] for item in instructions(program, layer, Opcode.MATRIX_MULTIPLY))
        # Weights that need more than eight bits are multiplied in two parts.
        assert multiplied in (rows * planes * tiles, 2 * rows * planes * tiles)
        activated = sum(item["rows"] for item in instructions(program, layer, Opcode.ACTIVATE))
        assert activated == rows * tiles
    assert instructions(program, 0, Opcode.READ_HOST_MEMORY)
    assert instructions(program, 1, Opcode.WRITE_HOST_MEMORY)
    assert not instructions(program, 0, Opcode.WRITE_HOST_MEMORY)


def test_halt_belongs_to_no_layer() -> None:
    program = compile_network(conv_network(3, 5, 8, 8, kernel=3, stride=1, pool=2), CONFIG)
    assert program.layer_numbers.tolist() == [0] * (len(program.instructions) - 1) + [-1]


def test_fused_nodes_are_one_layer() -> None:
    values = parameters(np.random.default_rng(5))
    nodes = [
        dequantize("x"),
        dequantize("w", axis=0),
        node("Conv", "x_real w_real", "conv"),
        node("Relu", "conv", "relu"),
        quantize("relu", "h", "h"),
        node("MaxPool", "h", "pool", kernel_shape=[2, 2], strides=[2, 2]),
        dequantize("pool", "h"),
        node("Tanh", "pool_real", "tanh"),
        quantize("tanh", "y", "y"),
    ]
    program = openmxu.compile(image_model(nodes, values), CONFIG)
    # Limits are part of the convolution; the table is named after the node that quantizes its values.
    assert [(layer.name, layer.kind) for layer in program.layers] == [("conv+pool+y", "convolution")]
    assert instructions(program, 0, Opcode.ACTIVATE)


def test_dense_nodes() -> None:
    values = constants(np.random.default_rng(7))
    nodes = [
        dequantize("x"),
        dequantize("w"),
        node("MatMul", "x_real w_real", "first"),
        quantize("first", "h", "h"),
        dequantize("h"),
        dequantize("v"),
        node("MatMul", "h_real v_real", "second"),
        quantize("second", "y", "y"),
    ]
    program = openmxu.compile(image_model(nodes, values, shape=(50,)), CONFIG)
    assert [layer.name for layer in program.layers] == ["first", "second"]


def test_moved_instructions_keep_their_layer() -> None:
    tasks = TaskList(CONFIG)
    for layer in range(2):
        tasks.layer = layer
        tasks.read(4 * layer, 0, 4)
        tasks.multiply(
            source=Rows(4 * layer, 4),
            accumulators=Rows(0, 4),
            accumulate=False,
            tile=WeightTile(layer, ByteFormat(True, layer)),
            registers={},
        )
    code = list_schedule(tasks.tasks, CONFIG)
    found = [(Opcode(item.word & 0xFF), int(layer)) for item, layer in zip(code.instructions, code.layers, strict=True)]
    reads = [layer for opcode, layer in found if opcode is Opcode.READ_HOST_MEMORY]
    products = [layer for opcode, layer in found if opcode is Opcode.MATRIX_MULTIPLY]
    assert reads == products == [0, 1]
    assert found.index((Opcode.READ_HOST_MEMORY, 1)) < found.index((Opcode.MATRIX_MULTIPLY, 0))
    assert found[-1] == (Opcode.HALT, -1)
