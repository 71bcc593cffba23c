"""``openmxu array``: a small product on the array, cycle by cycle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from openmxu.cli.errors import InputError, RunError
from openmxu.cli.files import STANDARD_STREAM, check_writable, write_output
from openmxu.cli.options import OutputOption
from openmxu.cli.report import print_rows, working

__all__ = ["array_command"]

_ANIMATION = ".svg"


def array_command(
    output: OutputOption,
    m: Annotated[int, typer.Argument(metavar="M", min=1, max=1024, help="Rows of the left matrix.")] = 6,
    k: Annotated[int, typer.Argument(metavar="K", min=1, max=1024, help="Its columns, rows of the weights.")] = 8,
    n: Annotated[int, typer.Argument(metavar="N", min=1, max=1024, help="Columns of the weights.")] = 4,
    size: Annotated[int, typer.Option("--size", metavar="S", help="The array is S × S: 2, 4 or 8.")] = 4,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Seed of the random matrices.")
    ] = 0,
) -> None:
    """Show a product of small random matrices on the array, cycle by cycle, as a page that is stepped.

    A file whose name ends in .svg becomes an animated picture instead. The numbers are those of the registers in a
    simulation of the RTL, and the product is compared with numpy's.
    """
    check_writable(output)
    # Imported here because the other commands need no HDL.
    from openmxu.profiling.array_animation import array_animation
    from openmxu.profiling.array_example import MismatchError, example_recording
    from openmxu.profiling.array_view import array_page_html

    with working(f"Simulating an array of {size} × {size}"):
        try:
            recording = example_recording(m, k, n, size, seed)
        except ValueError as error:
            raise InputError(str(error)) from None
        except MismatchError as error:
            raise RunError(str(error)) from None
    is_animation = output.suffix.lower() == _ANIMATION
    text = array_animation(recording) if is_animation else array_page_html(recording)
    write_output(output, text.encode())
    if output == STANDARD_STREAM or output == Path("/dev/stdout"):
        return
    print_rows(
        [
            ("product", f"{m} × {k} by {k} × {n} on an array of {size} × {size}"),
            ("tiles", str(len(recording.tiles))),
            ("cycles", str(recording.cycles)),
            ("sums that differ from numpy", f"0 of {m * n}"),
            ("written", f"{output}, {'an animated picture' if is_animation else 'a page'}"),
        ]
    )
