"""Program objects: checks of inputs, splitting and padding of batches, and files, complete or damaged."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import openmxu
import openmxu.models
from openmxu import InputError, Program, ProgramFileError
from openmxu.arch.isa import encode_program
from openmxu.compiler import compile_network, conv_network, evaluate, gemm, gemm_input, gemm_network
from tests.compiler.models.host_models import embedding
from tests.compiler.models.networks import random_network, random_rows

CONFIG = openmxu.Config(size=4, activation_lanes=1)


@pytest.fixture
def program() -> Program:
    return gemm(6, 5, 7, CONFIG)


@pytest.fixture
def device():
    with openmxu.open_device("interpreter", CONFIG) as opened:
        yield opened


@pytest.mark.parametrize("rows", [0, 1, 5, 6, 7, 12, 20])
def test_any_batch(program: Program, device: openmxu.Device, rows: int) -> None:
    values = gemm_input(rows, 5)
    result = program.run(device, values)["y"]
    assert result.shape == (rows, 7)
    assert result.dtype == np.uint8
    assert (result == evaluate(gemm_network(6, 5, 7), values)).all()
    assert program.executions(rows) == -(-rows // 6)


def test_inputs_by_name(program: Program, device: openmxu.Device) -> None:
    values = gemm_input(6, 5)
    assert (program.run(device, {"a": values})["y"] == program.run(device, values)["y"]).all()


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"b": np.zeros((6, 5), np.uint8)}, "expected inputs named a; found b"),
        ({}, "expected inputs named a; found none"),
        (np.zeros((6, 5), np.float32), r"input 'a' must be uint8 of shape \(batch, 5\), not float32 of shape \(6, 5\)"),
        (np.zeros((6, 4), np.uint8), r"input 'a' must be uint8 of shape \(batch, 5\), not uint8 of shape \(6, 4\)"),
        (np.zeros(5, np.uint8), r"not uint8 of shape \(5,\)"),
        ([1, 2, 3], "input 'a' must be an array, .*, not list"),
    ],
)
def test_wrong_inputs(program: Program, device: openmxu.Device, inputs: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        program.run(device, inputs)


def test_one_array_for_two_inputs(program: Program, device: openmxu.Device) -> None:
    second = dataclasses.replace(program.inputs[0], name="b")
    with pytest.raises(InputError, match="expected inputs named a, b; found one array"):
        dataclasses.replace(program, inputs=(*program.inputs, second)).run(device, gemm_input(6, 5))


def test_wrong_configuration(program: Program) -> None:
    with (
        openmxu.open_device("interpreter", openmxu.Config()) as device,
        pytest.raises(InputError, match=r"compiled for Config\(size=4.*but the device is Config\(size=8"),
    ):
        program.run(device, gemm_input(6, 5))


@pytest.mark.parametrize("seed", range(4))
def test_file_round_trip(device: openmxu.Device, tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    network = random_network(random, (9, 6, 3))
    saved = compile_network(network, CONFIG, 10)
    path = tmp_path / "model.mxu"
    saved.save(path)
    loaded = Program.load(path)
    assert loaded.instructions == saved.instructions
    for field in ("config", "batch", "inputs", "outputs", "segments"):
        assert getattr(loaded, field) == getattr(saved, field)
    assert loaded.multiply_adds == saved.multiply_adds == 10 * (9 * 6 + 6 * 3)
    assert loaded.layers == saved.layers
    assert (loaded.layer_numbers == saved.layer_numbers).all()
    rows = random_rows(random, network, 10)
    assert (loaded.run(device, rows)["y"] == saved.run(device, rows)["y"]).all()
    assert list(tmp_path.iterdir()) == [path]


def test_scales_are_kept_in_the_file(tmp_path: Path) -> None:
    program = openmxu.compile(openmxu.models.DIGITS_MODEL, CONFIG)
    program.save(tmp_path / "digits.mxu")
    assert Program.load(tmp_path / "digits.mxu").segments == program.segments


def test_failed_save_leaves_nothing(program: Program, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        program.save(tmp_path / "missing" / "model.mxu")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", [0, 10, 1000, -1])
def test_truncated_file(program: Program, tmp_path: Path, length: int) -> None:
    path = tmp_path / "model.mxu"
    program.save(path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ProgramFileError, match=r"model\.mxu is no openmxu program, or damaged: ."):
        Program.load(path)


def test_flipped_bits(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "model.mxu"
    program.save(path)
    data = bytearray(path.read_bytes())
    position = data.index(b"instructions.npy") + 300
    data[position] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(ProgramFileError, match="damaged"):
        Program.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "version 99 is unknown"),
        ({"config": {"size": 3}}, "size must be a power of two"),
        ({"host_bytes": 10}, "lies outside host memory"),
        ({"batch": "many"}, "batch is 'many'"),
        ({"batch": True}, "batch is True"),
        ({"inputs": [{}]}, "shape"),
        ({"inputs": []}, "no input or no output"),
        ({"outputs": []}, "no input or no output"),
        ({"layers": []}, "do not belong to 0 layers"),
        ({"layers": [{"name": 5, "kind": "product", "multiply_adds": 1}]}, "a layer's name and kind are 5, 'product'"),
        ({"layers": [{"name": "a", "kind": "product", "multiply_adds": -1}]}, "multiply_adds of a is -1"),
        ({"segments": []}, "do not have all instructions"),
        ({"segments": [{"kind": "gpu"}]}, "the kind of segment 0 is 'gpu'"),
        ({"segments": 5}, "not iterable"),
        ({"outputs": [{"name": "z", "dtype": "uint8", "shape": [7]}]}, r"nothing makes z, uint8 of shape \(batch, 7\)"),
        ({"outputs": [{"name": "y", "dtype": "int8", "shape": [7]}]}, "nothing makes y, int8"),
        ({"outputs": [{"name": 5, "dtype": "int8", "shape": [7]}]}, "a tensor's name is 5"),
        ({"outputs": [{"name": "y", "dtype": "object", "shape": [7]}]}, "the type of y is 'object'"),
        ({"outputs": [{"name": "y", "dtype": "int8", "shape": [0]}]}, "dimension 0 of y is 0"),
    ],
)
def test_wrong_header(program: Program, tmp_path: Path, change: dict[str, object], message: str) -> None:
    refuse_changed(program, tmp_path, message, header=change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": []}, "segment 0 has no input or no output"),
        ({"outputs": []}, "segment 0 has no input or no output"),
        ({"inputs": [{}]}, "scale"),
        ({"constants": [10**9, 64]}, "constants lie outside"),
        ({"constants": [0, 0]}, r"there are \d+ bytes of constants, not 0"),
        ({"constants": [-1, 64]}, "a number of segment 0 is -1"),
        ({"constants": [0]}, "not enough values"),
        ({"start": 1}, "not one behind the other"),
        ({"stop": 0}, "not one behind the other"),
        ({"stop": 10**6}, "not Halt"),
        ({"stop": 1}, "not Halt"),
        ({"layers": [0, 0]}, "do not have all instructions and layers"),
        ({"layers": [1, 1]}, "not one behind the other"),
    ],
)
def test_wrong_segment(program: Program, tmp_path: Path, change: dict[str, object], message: str) -> None:
    refuse_changed(program, tmp_path, message, segments={0: change})


@pytest.mark.parametrize("which", ["inputs", "outputs"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 5}, "a tensor's name is 5"),
        ({"dtype": "object"}, "the type of . is 'object'"),
        ({"stored": "float64"}, "the stored type of . is 'float64'"),
        ({"stored": "int8"}, "is uint8, but stored as int8 without a scale"),
        ({"shape": [-5]}, "dimension 0 of . is -5"),
        ({"columns": 0}, "columns of . is 0"),
        ({"columns": 3}, r"of shape \(.,\) has no rows of 3"),
        ({"offset": 1.5}, "offset of . is 1.5"),
        ({"channels_first": 1}, "channels_first of . is 1"),
        ({"packing": 1}, "."),
        ({"zero_point": 256}, "zero point of . is 256"),
        ({"scale": []}, r"the scale of . is \(\)"),
        ({"scale": ["a"]}, "the scale of . is"),
    ],
)
def test_wrong_tensor(program: Program, tmp_path: Path, which: str, change: dict[str, object], message: str) -> None:
    (tensor,) = (dataclasses.asdict(item) for item in getattr(program.segments[0], which))
    refuse_changed(program, tmp_path, message, segments={0: {which: [tensor | change]}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"height": 0}, "height of x is 0"),
        ({"fill": 256}, "fill of x is 256"),
        ({"origin_y": 0.5}, "origin_y of x is 0.5"),
        ({"image_width": 5}, r"x of shape \(1, 6, 6\) has no 6 × 5"),
        ({"lanes": 3}, "lanes"),
    ],
)
def test_wrong_packing(tmp_path: Path, change: dict[str, object], message: str) -> None:
    program = compile_network(conv_network(1, 2, 6, 6, kernel=2, stride=1, pool=1), CONFIG)
    (tensor,) = (dataclasses.asdict(item) for item in program.segments[0].inputs)
    tensor["packing"] |= change
    refuse_changed(program, tmp_path, message, segments={0: {"inputs": [tensor]}})


def reading_files(model: onnx.ModelProto) -> None:
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="secret")


def of_another_domain(model: onnx.ModelProto) -> None:
    model.graph.node[0].domain = "somewhere"


def without_input(model: onnx.ModelProto) -> None:
    del model.graph.input[:]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (reading_files, "the host's part wants data of other files"),
        (of_another_domain, "the host's part has operators of an unknown domain"),
        (without_input, "the host's part has nothing as inputs or outputs"),
    ],
)
def test_wrong_host_part(tmp_path: Path, change: Callable[[onnx.ModelProto], None], message: str) -> None:
    program = openmxu.compile(embedding(), CONFIG)
    first, last = program.host_segments
    model = onnx.load_from_string(first.model)
    change(model)
    graph = model.SerializeToString()
    graphs = np.frombuffer(graph + last.model, np.uint8)
    refuse_changed(program, tmp_path, message, segments={0: {"graph_bytes": len(graph)}}, graphs=graphs)


@pytest.mark.parametrize(
    ("number", "change", "message"),
    [
        (2, {"inputs": [], "outputs": []}, "the host's part has h as inputs or outputs"),
        (2, {"batch": 0}, "the batch of segment 2 is 0"),
        (2, {"graph_bytes": 10**6}, "graph_bytes of segment 2 is 1000000"),
        (2, {"multiply_adds": -1}, "multiply_adds of segment 2 is -1"),
        (1, {"kind": "host"}, "graph_bytes"),
    ],
)
def test_wrong_header_of_host_parts(tmp_path: Path, number: int, change: dict[str, object], message: str) -> None:
    refuse_changed(openmxu.compile(embedding(), CONFIG), tmp_path, message, segments={number: change})


@pytest.mark.parametrize(
    ("kept", "message"), [(slice(1, 3), "nothing makes q, uint8"), (slice(2), "nothing makes y, float32")]
)
def test_missing_host_part(tmp_path: Path, kept: slice, message: str) -> None:
    program = openmxu.compile(embedding(), CONFIG)
    fewer = dataclasses.replace(program, segments=program.segments[kept])
    refuse_changed(fewer, tmp_path, message)


@pytest.mark.parametrize("length", [0, 1, 40])
def test_truncated_host_part(tmp_path: Path, length: int) -> None:
    program = openmxu.compile(embedding(), CONFIG)
    first, last = program.host_segments
    graphs = np.frombuffer(first.model + last.model[:length], np.uint8)
    message = "the host's part (is damaged|has nothing)"
    refuse_changed(program, tmp_path, message, segments={2: {"graph_bytes": length}}, graphs=graphs)


def test_graphs_that_no_segment_has(program: Program, tmp_path: Path) -> None:
    refuse_changed(program, tmp_path, "the segments have 0 bytes of graphs, not 1", graphs=np.zeros(1, np.uint8))


@pytest.mark.parametrize("count", [0, -1])
def test_missing_halt(program: Program, tmp_path: Path, count: int) -> None:
    words = encode_program(program.instructions)[:count]
    refuse_changed(program, tmp_path, "the instructions do not belong|not Halt", instructions=words)


@pytest.mark.parametrize("numbers", [[0], [1], [-2]])
def test_wrong_layers(program: Program, tmp_path: Path, numbers: list[int]) -> None:
    count = 1 if numbers == [0] else len(program.instructions)
    layers = np.resize(np.array(numbers, np.int32), count)
    refuse_changed(program, tmp_path, "the instructions do not belong to 1 layers", layers=layers)


def refuse_changed(
    program: Program,
    folder: Path,
    message: str,
    header: dict[str, object] | None = None,
    segments: dict[int, dict[str, object]] | None = None,
    **changes: np.ndarray,
) -> None:
    """Change header, segments and arrays in a program's file, and check that loading it fails."""
    path = folder / "model.mxu"
    program.save(path)
    with np.load(path) as archive:
        arrays = dict(archive) | changes
    changed = json.loads(arrays["header"].tobytes()) | (header or {})
    for number, change in (segments or {}).items():
        changed["segments"][number] |= change
    arrays["header"] = np.frombuffer(json.dumps(changed).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    path.write_bytes(buffer.getvalue())
    with pytest.raises(ProgramFileError, match=message):
        Program.load(path)


@pytest.mark.parametrize("offset", [4, 6, 8])
def test_damaged_archive(program: Program, tmp_path: Path, offset: int) -> None:
    """Version, flags and compression of a file in the archive get values that zipfile does not support."""
    path = tmp_path / "model.mxu"
    program.save(path)
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"PK\x01\x02") + 2
    data[entry + offset] = 0xFF
    path.write_bytes(data)
    with pytest.raises(ProgramFileError, match="damaged"):
        Program.load(path)


def test_pickles_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.mxu"
    with path.open("wb") as file:
        np.savez(file, header=np.array([{}], object))
    with pytest.raises(ProgramFileError, match="damaged"):
        Program.load(path)


def test_disassembly_names_instructions(program: Program) -> None:
    lines = program.disassemble().splitlines()
    assert len(lines) == len(program.instructions)
    assert lines[-1] == "halt"
    assert any(line.startswith("matrixmultiply accumulate, next_tile") for line in lines)


def test_unknown_device() -> None:
    with pytest.raises(openmxu.UnknownDeviceError, match="unknown device 'gpu'; known: interpreter, model, verilator"):
        openmxu.open_device("gpu", CONFIG)
