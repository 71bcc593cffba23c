"""Reads the lines that the firmware prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openmxu.segments.host_tensor import HostTensor

__all__ = ["Measurement", "ResultError", "read_results"]


class ResultError(Exception):
    """The firmware reports a failure, or prints something else than results."""


@dataclass
class Measurement:
    """What the firmware printed about one network.

    Attributes
    ----------
    classes
        The class of each image.
    outputs
        The values of each image: (images, values).
    cycles
        Cycles by what they were spent on.
    """

    classes: NDArray[np.int64]
    outputs: NDArray[Any]
    cycles: dict[str, int] = field(default_factory=dict)


def read_results(lines: Iterable[str], outputs: Mapping[str, HostTensor]) -> dict[str, Measurement]:
    """Measurements by the networks' names.

    Parameters
    ----------
    lines
        Lines as ``firmware/main.c`` describes them.
    outputs
        The output of each network.

    Raises
    ------
    ResultError
        A line reports a failure or has another form, or images or networks are missing.
    """
    found: dict[str, Measurement] = {}
    classes: dict[int, int] = {}
    values: dict[int, NDArray[Any]] = {}
    name, count = "", 0
    for line in lines:
        try:
            match line.split():
                case ["network", name, _, images]:
                    count = int(images)
                    classes, values = {}, {}
                case ["image", number, predicted, words] if name in outputs:
                    classes[int(number)] = int(predicted)
                    values[int(number)] = _values(words, outputs[name])
                case ["cycles", str(ended), *numbers] if ended == name:
                    if sorted(values) != list(range(count)):
                        raise ResultError(f"{name} has {len(values)} results for {count} images")
                    pairs = (text.split("=") for text in numbers)
                    cycles = {key: int(text) for key, text in pairs}
                    found[name] = Measurement(
                        np.array([classes[index] for index in range(count)]),
                        np.array([values[index] for index in range(count)]),
                        cycles,
                    )
                case ["failed", *what]:
                    raise ResultError(f"the firmware failed: {' '.join(what)}")
                case _:
                    raise ResultError(f"the firmware printed {line!r}")
        except ValueError:  # a number is none, or there are too few of them
            raise ResultError(f"the firmware printed {line!r}") from None
    missing = set(outputs) - set(found)
    if missing:
        raise ResultError(f"the firmware has not finished {', '.join(sorted(missing))}")
    return found


def _values(words: str, output: HostTensor) -> NDArray[Any]:
    """The values of one image, which are the integers that the device stores, dequantized if the host does that."""
    stored = np.dtype(output.stored)
    numbers = np.frombuffer(bytes.fromhex(words), stored.newbyteorder(">"))
    return output.from_integers(numbers.astype(stored).reshape(1, *output.shape)).ravel()
