"""``openmxu profile``."""

from __future__ import annotations

import json as json_module
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openmxu.cli.boards.opening import opened, opened_board
from openmxu.cli.configuration import DEFAULTS, ConfigChoice, configured
from openmxu.cli.errors import InputError, RunError
from openmxu.cli.files import check_readable, read_arrays, write_output
from openmxu.cli.options import (
    DEFAULT_LATENCY,
    INTERPRETER,
    AddressOption,
    BatchOption,
    BaudOption,
    HostRateOption,
    JsonOption,
    LatencyOption,
    PortOption,
    ShapeOption,
    WeightRateOption,
    read_shapes,
)
from openmxu.cli.programs import check_predicted, load_program, naming_inputs
from openmxu.cli.report import print_json, print_rows, working

if TYPE_CHECKING:
    from openmxu.profiling import Profile

__all__ = ["profile_command"]

_PAGE, _NUMBERS = "index.html", "profile.json"

_SHOWN = 8
"""The largest array whose elements the page shows."""

_ARRAY = """<section id="array">
<h2>The array</h2>
<p>Two tiles of random weights, not this model's, on an array of {size} × {size}: the numbers are those of the registers
in a simulation of the RTL.</p>
{view}
</section>"""


@configured
def profile_command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Quantized ONNX model, or a compiled program.")],
    source: Annotated[
        Path, typer.Option("--input", "-i", metavar="FILE", help="Input (batch, ...) as .npy; several by name as .npz.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help=f"Folder to write {_PAGE} and {_NUMBERS} to."),
    ],
    device: AddressOption = INTERPRETER,
    choice: ConfigChoice = DEFAULTS,
    batch: BatchOption = None,
    shape: ShapeOption = None,
    memory_latency: LatencyOption = None,
    host_rate: HostRateOption = None,
    weight_rate: WeightRateOption = None,
    port: PortOption = None,
    baud: BaudOption = None,
    json: JsonOption = False,
) -> None:
    """Run one batch of a model, and show as a page where the cycles went.

    The page opens from disk: costs and limits of the layers, the roofline, a timeline of the units, the unified
    buffer's occupancy. Without a clock, on the interpreter, all of it is what the cycle model predicts.
    """
    _check_folder(output)
    try:
        from openmxu.profiling.page import profile_page
    except ModuleNotFoundError as error:
        raise RunError(f"a profile needs {error.name}: install it with: pip install 'openmxu[profile]'") from None
    from openmxu.profiling import take_profile

    inputs = read_arrays(source)
    rates = {"host_rate": host_rate, "weight_rate": weight_rate}
    memories = {"memory_latency": memory_latency, **rates}
    # The interpreter has no clock: latency and rates are those that the cycle model assumes.
    opening: dict[str, object] = {"port": port, "baud": baud, **({} if device == INTERPRETER else memories)}
    shapes = read_shapes(shape)
    check_readable(model)
    with opened_board(device, choice, **opening) as board:
        own = None if board is None else board.config
        program = load_program(model, choice, batch, shapes=shapes, board=own, rates=rates)
        if not program.device_segments:
            raise InputError(f"{model}: the host computes all of it, so that there is nothing to profile")
        # Check before opening a simulation, which may be built.
        check_predicted(program.config)
        with naming_inputs(source):
            program.check_inputs(inputs)
        running = opened(board, device, program.config, **opening)
        with running as used, working(f"Profiling {model.name}"), naming_inputs(source):
            found = take_profile(
                program,
                used,
                inputs,
                model=model.name,
                device_name=device.name.value,
                memory_latency=memory_latency or DEFAULT_LATENCY,
                **rates,
            )
    page = profile_page(found, _array_view(program.config.size))
    numbers = json_module.dumps(found.as_dict(), allow_nan=False)
    output.mkdir(exist_ok=True)
    write_output(output / _NUMBERS, numbers.encode())
    write_output(output / _PAGE, page.encode())
    summary = found.summary()
    if json:
        print_json(summary)
        return
    counted = "none: the device has no clock" if found.counted is None else f"{found.counted:,}"
    print_rows(
        [
            ("page", str(output / _PAGE)),
            ("numbers", str(output / _NUMBERS)),
            ("run", _run_text(found)),
            ("cycles of all layers", f"{summary['layer_cycles']:,}"),
            ("cycles of the device", counted),
            ("array utilization", f"{found.utilization:.3f}"),
        ]
    )


def _run_text(found: Profile) -> str:
    """The array, the batch, and where the times come from."""
    size = found.program.config.size
    source = "predicted by the cycle model" if found.timeline.source == "model" else "recorded in the RTL"
    return f"batch of {found.program.batch} on {size} × {size} elements, times {source}"


def _array_view(size: int) -> str:
    """A product on the array, cycle by cycle; nothing for arrays that are too large to be shown."""
    if size > _SHOWN:
        return ""
    from openmxu.profiling.array_example import MismatchError, example_recording
    from openmxu.profiling.array_view import array_view_html

    with working("Recording the array"):
        try:
            return _ARRAY.format(size=size, view=array_view_html(example_recording(6, 2 * size, size, size)))
        except MismatchError as error:
            raise RunError(str(error)) from None


def _check_folder(path: Path) -> None:
    """Check before a long run that files can be written into a folder, which need not be there yet.

    Raises
    ------
    InputError
        They cannot.
    """
    if path.exists() and not path.is_dir():
        raise InputError(f"cannot write to {path}: it is no directory")
    folder = path if path.exists() else path.resolve().parent
    if not folder.is_dir():
        raise InputError(f"cannot write to {path}: there is no directory {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"cannot write to {path}: permission denied")
