"""``openmxu demo``: a quantized network on handwritten digits, compared with ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from openmxu.cli.boards.opening import opened, opened_board
from openmxu.cli.configuration import DEFAULTS, ConfigChoice, configured
from openmxu.cli.errors import RunError
from openmxu.cli.options import (
    VERILATOR,
    AddressOption,
    BatchOption,
    BaudOption,
    JsonOption,
    PortOption,
)
from openmxu.cli.programs import compile_model, measured_run
from openmxu.cli.report import print_json, print_rows
from openmxu.exact_session import exact_session
from openmxu.models import DIGITS_MODEL, digits_test_split

__all__ = ["demo_command"]


@configured
def demo_command(
    device: AddressOption = VERILATOR,
    choice: ConfigChoice = DEFAULTS,
    batch: BatchOption = None,
    port: PortOption = None,
    baud: BaudOption = None,
    json: JsonOption = False,
) -> None:
    """Classify handwritten digits with a quantized network and compare every output with ONNX Runtime's.

    The images are the test split of the digits that scikit-learn ships. Without --batch one execution takes them all.
    The first run on the RTL of a configuration compiles it, which takes a while.
    """
    images, labels = digits_test_split()
    with opened_board(device, choice, port=port, baud=baud) as board:
        config = choice.config() if board is None else board.config
        expected = _onnx_runtime(DIGITS_MODEL, images)
        program = compile_model(DIGITS_MODEL, config, batch or len(images))
        with opened(board, device, config, port=port, baud=baud) as running:
            what = f"Running {len(images)} images on {device.name.value}"
            outputs, measurement = measured_run(program, running, images, what)
    (logits,) = outputs.values()
    mismatches = int(np.count_nonzero(logits != expected))
    accuracy = _accuracy(logits, labels)
    expected_accuracy = _accuracy(expected, labels)
    if json:
        print_json(
            {
                "demo": "digits",
                "device": device.name.value,
                "images": len(images),
                "batch": program.batch,
                "outputs": logits.size,
                "mismatches": mismatches,
                "accuracy": accuracy,
                "onnxruntime_accuracy": expected_accuracy,
                "images_per_second": len(images) / measurement.seconds,
                **measurement.as_dict(),
            }
        )
    else:
        cycles = measurement.cycles
        print_rows(
            [
                ("network", f"{DIGITS_MODEL.name}, {len(images)} test images"),
                ("device", f"{device}, an array of {config.size} × {config.size}"),
                ("outputs that differ from ONNX Runtime", f"{mismatches} of {logits.size:,}"),
                ("accuracy", f"{accuracy:.4f}"),
                ("accuracy of ONNX Runtime", f"{expected_accuracy:.4f}"),
                *([("cycles per image", f"{cycles / len(images):.1f}")] if cycles else []),
                *measurement.as_rows(),
                ("images per second of simulation", f"{len(images) / measurement.seconds:,.0f}"),
            ]
        )
    if mismatches:
        raise typer.Exit(1)


def _onnx_runtime(model: Path, images: NDArray[np.float32]) -> NDArray[Any]:
    """The only output of ONNX Runtime's CPU provider.

    Raises
    ------
    RunError
        ONNX Runtime is not installed.
    """
    try:
        session = exact_session(model)
    except ImportError:
        raise RunError("the demo compares with ONNX Runtime: install it with: pip install 'openmxu[demo]'") from None
    (output,) = session.run(None, {session.get_inputs()[0].name: images})
    return output


def _accuracy(logits: NDArray[Any], labels: NDArray[np.int64]) -> float:
    return float((logits.argmax(axis=1) == labels).mean())
