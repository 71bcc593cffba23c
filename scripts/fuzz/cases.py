"""One damaged file, and what the tools make of it."""

from __future__ import annotations

import functools
import io
import random
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import onnxruntime

import openmxu
from openmxu.cli.errors import InputError as FileError
from openmxu.cli.files import read_arrays
from openmxu.exact_session import exact_session
from scripts.fuzz.damage import damaged_bytes, operate
from scripts.random_models import FAMILIES, Case

__all__ = ["KINDS", "prepare", "try_case"]

_CONFIG = openmxu.Config.for_size(4, profile="full")
_MODELS = 40
_BASE = ("QLinearConv", "QLinearMatMul", "MaxPool", "Concat", "Sigmoid", "Reshape", "Conv", "MatMul")
_TYPED = (openmxu.CompileError, openmxu.ProgramFileError, openmxu.InputError, openmxu.DeviceError, FileError, OSError)
"""Errors that a user may see; each must be one line."""


def try_case(kind: str, seed: int) -> str:
    """Damage a file and use it.

    Returns
    -------
    ``refused`` or ``right``.

    Raises
    ------
    Exception
        Whatever is neither an error that a user may see nor a right result.
    """
    chance = _chance(kind, seed)
    try:
        KINDS[kind](chance)
    except _TYPED as error:
        if "\n" in str(error):
            raise AssertionError(f"the error has several lines: {error!r}") from error
        return "refused"
    return "right"


def prepare(kind: str, seeds: Iterable[int]) -> None:
    """Make the whole files that are damaged, which remain in this process."""
    make: Callable[[int], object] = _program if kind.startswith("program") else _base
    if kind != "arrays":
        for seed in seeds:
            make(_number(_chance(kind, seed)))


def _chance(kind: str, seed: int) -> random.Random:
    return random.Random(f"{kind} {seed}")


def _number(chance: random.Random) -> int:
    """The number of the whole file, the first that is left to chance."""
    return chance.randrange(_MODELS)


@functools.cache
def _base(number: int) -> Case:
    names = [name for name in _BASE if name in FAMILIES]
    return FAMILIES[names[number % len(names)]].case(1, number)


@functools.cache
def _program(number: int) -> bytes:
    case = _base(number)
    with tempfile.TemporaryDirectory(prefix="openmxu-") as folder:
        path = Path(folder) / "model.mxu"
        openmxu.compile(case.model, _CONFIG, batch=1).save(path)
        return path.read_bytes()


def _model_bytes(chance: random.Random) -> None:
    case = _base(_number(chance))
    _use(damaged_bytes(case.model.SerializeToString(), chance))


def _model_surgery(chance: random.Random) -> None:
    case = _base(_number(chance))
    _use(operate(case.model, chance).SerializeToString())


def _use(data: bytes) -> None:
    """Compile a model from a file in a folder of its own, run it, and compare it with ONNX Runtime."""
    with tempfile.TemporaryDirectory(prefix="openmxu-") as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(data)
        program = openmxu.compile(path, _CONFIG)
        left = [item.name for item in Path(folder).iterdir()]
        assert left == ["model.onnx"], f"there are other files: {left}"
    random_ = np.random.default_rng(len(data))
    inputs = {}
    for spec in program.inputs:
        shape = spec.full_shape(1)
        if np.prod(shape, dtype=np.float64) > 1e6:
            return
        values = random_.integers(0, 100, shape)
        inputs[spec.name] = values.astype(spec.dtype)
    with openmxu.open_device("interpreter", _CONFIG) as device:
        results = program.run(device, inputs)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        wanted = exact_session(data, options).run(None, inputs)
    except Exception:  # of many classes; ONNX Runtime refuses some models for reasons that do not matter here
        return
    for (name, array), other in zip(results.items(), wanted, strict=True):
        assert (array.dtype, array.shape) == (other.dtype, other.shape), f"{name} is {array.dtype} {array.shape}"
        if array.dtype.kind in "iu":
            distance = np.abs(array.astype(np.int64) - other.astype(np.int64)).max(initial=0)
            assert distance <= 1, f"{name} is {distance} apart"


def _program_bytes(chance: random.Random) -> None:
    _load(damaged_bytes(_program(_number(chance)), chance))


def _program_arrays(chance: random.Random) -> None:
    """An archive that is whole, with an array in it that is damaged, of another shape or type, or missing."""
    with np.load(io.BytesIO(_program(_number(chance)))) as archive:
        arrays = dict(archive)
    name = chance.choice(list(arrays))
    array = arrays[name]
    match chance.randrange(5):
        case 0:
            arrays[name] = np.frombuffer(damaged_bytes(array.tobytes(), chance), np.uint8)
        case 1:
            del arrays[name]
        case 2:
            arrays[name] = array[: chance.randrange(len(array) + 1)]
        case 3:
            arrays[name] = array.astype(chance.choice(("int8", "float32", "int64", "bool")))
        case 4:
            changed = bytearray(array.tobytes())
            for _ in range(chance.choice((1, 3, 10))):
                if changed:
                    changed[chance.randrange(len(changed))] = chance.randrange(256)
            arrays[name] = np.frombuffer(bytes(changed), array.dtype).reshape(array.shape)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]  # no array has the name of a parameter
    _load(buffer.getvalue())


def _load(data: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="openmxu-") as folder:
        path = Path(folder) / "model.mxu"
        path.write_bytes(data)
        program = openmxu.Program.load(path)
    if program.config.size > 32 or program.host_bytes > 1 << 24 or program.config.unified_buffer_rows > 1 << 16:
        return
    sizes = [np.prod(spec.full_shape(1), dtype=np.float64) for spec in program.inputs]
    if max(sizes) > 1e6 or program.batch > 1000 or len(program.instructions) > 100_000:
        return
    inputs = {spec.name: np.zeros(spec.full_shape(1), spec.dtype) for spec in program.inputs}
    with openmxu.open_device("interpreter", program.config) as device:
        program.run(device, inputs)


def _arrays(chance: random.Random) -> None:
    """Inputs for the command line: .npy and .npz."""
    array = np.arange(24, dtype=chance.choice(("uint8", "float32", "int64"))).reshape(2, 3, 4)
    buffer = io.BytesIO()
    is_archive = chance.random() < 0.5
    if is_archive:
        np.savez(buffer, a=array, b=array)
    else:
        np.save(buffer, array)
    data = buffer.getvalue()
    if chance.random() < 0.3:
        huge = chance.choice((b"(1099511627776, 3, 4)", b"(2, 1099511627776, 4)", b"(-1, 3, 4)"))
        data = data.replace(b"(2, 3, 4)", huge)
    else:
        data = damaged_bytes(data, chance)
    with tempfile.TemporaryDirectory(prefix="openmxu-") as folder:
        path = Path(folder) / ("x.npz" if is_archive else "x.npy")
        path.write_bytes(data)
        read_arrays(path)


KINDS: dict[str, Callable[[random.Random], None]] = {
    "model bytes": _model_bytes,
    "model surgery": _model_surgery,
    "program bytes": _program_bytes,
    "program arrays": _program_arrays,
    "arrays": _arrays,
}
