"""``openmxu run`` for bare instructions: an assembly or binary program between a host memory and weights."""

from __future__ import annotations

import io
import time
from collections import Counter as Tally
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from openmxu.arch import Config
from openmxu.arch.events import Event, EventKind
from openmxu.arch.isa import Instruction
from openmxu.assembler import AssemblyError, assemble
from openmxu.cli.boards.opening import opened, opened_board
from openmxu.cli.configuration import ConfigChoice
from openmxu.cli.errors import InputError, RunError
from openmxu.cli.files import (
    ASSEMBLY_SUFFIXES,
    STANDARD_STREAM,
    array_bytes,
    check_writable,
    read_arrays,
    read_bytes,
    read_text,
    write_output,
)
from openmxu.cli.options import DeviceAddress
from openmxu.cli.programs import Measurement
from openmxu.cli.report import print_json, print_rows, working
from openmxu.cli.waveforms import waveform_row, write_companions
from openmxu.device import DeviceFault
from openmxu.program_file import ProgramFileError, read_program

__all__ = ["run_instructions"]

_OTHERS = (".onnx", ".mxu")
"""Suffixes of what runs with --input and --output instead."""


def run_instructions(
    source: Path,
    host_memory: Path,
    weights: Path | None,
    output: Path | None,
    choice: ConfigChoice,
    device: DeviceAddress,
    json: bool,
    **options: object,
) -> None:
    """Execute bare instructions, print events and counters, and write the host memory that they leave.

    Parameters
    ----------
    source
        Assembly (``.s``), or 16-byte instruction words.
    host_memory, weights
        Contents of the memories: an array as ``.npy``, whose bytes count, or bytes as they are.
    output
        Where to write host memory: as ``.npy`` with the type and shape of ``host_memory``, or else as bytes.
    options
        As of :func:`openmxu.cli.programs.open_device`.

    Raises
    ------
    InputError
        A file cannot be read or written, or the program does not end with Halt.
    RunError, openmxu.device.DeviceError
        The program faulted, or the device failed; nothing is written.
    """
    if output is not None:
        check_writable(output)
        if json and output == STANDARD_STREAM:
            raise InputError("--json and --host-memory-output - exclude each other: both print on stdout")
    with opened_board(device, choice, **options) as board:
        config = choice.config() if board is None else board.config
        instructions = _read_instructions(source, config)
        array = _read_memory(host_memory)
        host = np.frombuffer(bytearray(array.tobytes()), np.uint8)
        tiles = np.zeros(0, np.uint8) if weights is None else _read_memory(weights).reshape(-1).view(np.uint8)
        with opened(board, device, config, **options) as running, working(f"Running {source.name}"):
            start = time.perf_counter()
            try:
                events = running.execute(instructions, host, np.ascontiguousarray(tiles))
            except ValueError as error:
                raise InputError(f"{source}: {error}") from None
            except DeviceFault as error:
                sizes = f"host memory has {host.size:,} bytes, weight memory {tiles.size:,}"
                raise RunError(f"{source}: {error} ({sizes})") from None
            seconds = time.perf_counter() - start
            counters = {counter.name.lower(): int(value) for counter, value in running.counters.items()}
    if isinstance(waves := options.get("waves"), Path):
        write_companions(waves, config, instructions)
    if output is not None:
        left = host.view(array.dtype).reshape(array.shape)
        write_output(output, array_bytes(left) if output.suffix == ".npy" else left.tobytes())
    measurement = Measurement(config, 0, seconds, counters)
    if json:
        print_json(_facts(device, instructions, events, measurement))
    elif output != STANDARD_STREAM:
        rows = _rows(output, instructions, events, measurement)
        if isinstance(waves, Path):
            cycles = options.get("waves_cycles")
            rows.insert(1, waveform_row(waves, cycles if isinstance(cycles, tuple) else None))
        print_rows(rows)


def _read_instructions(source: Path, config: Config) -> list[Instruction]:
    if source.suffix in _OTHERS:
        raise InputError(f"{source} is a model: it runs with --input and --output; --host-memory is for instructions")
    try:
        if source.suffix in ASSEMBLY_SUFFIXES:
            return assemble(read_text(source), config, name=str(source))
        return read_program(source)
    except (AssemblyError, ProgramFileError) as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"cannot read {source}: {(error.strerror or str(error)).lower()}") from None


def _read_memory(path: Path) -> NDArray[Any]:
    """The array of a ``.npy`` file, or else the bytes of a file."""
    contents = read_bytes(path)
    if not contents.startswith(npy.MAGIC_PREFIX):
        return np.frombuffer(contents, np.uint8)
    array = read_arrays(path) if path != STANDARD_STREAM else npy.read_array(io.BytesIO(contents), allow_pickle=False)
    assert isinstance(array, np.ndarray), "its first bytes are those of an array"
    return np.ascontiguousarray(array)


def _facts(
    device: DeviceAddress, instructions: list[Instruction], events: list[Event], measurement: Measurement
) -> Mapping[str, Any]:
    listed = [{"kind": event.kind.name.lower(), "index": event.index, "tag": event.tag} for event in events]
    return {
        "device": device.name.value,
        "size": measurement.config.size,
        "instructions": len(instructions),
        "events": listed,
        "cycles": measurement.cycles,
        "seconds": measurement.seconds,
        "counters": dict(measurement.counters),
    }


def _rows(
    output: Path | None, instructions: list[Instruction], events: list[Event], measurement: Measurement
) -> list[tuple[str, str]]:
    kinds = Tally(instruction.format.name for instruction in instructions if instruction.format is not None)
    rows = [("host memory", "not kept; --host-memory-output FILE writes it" if output is None else str(output))]
    rows.append(("instructions", ", ".join(f"{count} {name}" for name, count in kinds.items())))
    for event in events:
        tag = "" if event.kind is EventKind.HALT else f", tag {event.tag}"
        rows.append(("event", f"{event.kind.name.lower()} of instruction {event.index}{tag}"))
    rows += [(name.replace("_", " "), f"{value:,}") for name, value in measurement.counters.items() if value]
    return [*rows, ("time", f"{measurement.seconds:.2f} s")]
