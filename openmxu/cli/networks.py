"""The example networks of a clone, by name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

import openmxu
from openmxu.cli.errors import InputError, RunError

if TYPE_CHECKING:
    import onnx

__all__ = ["ExampleNetwork", "load_network", "network_names"]

_EXAMPLES = Path(openmxu.__file__).resolve().parents[1] / "examples"
_MODULE = "network.py"


class ExampleNetwork(Protocol):
    """The interface of ``NETWORK`` in ``examples/NAME/network.py``."""

    def model(self) -> onnx.ModelProto:
        """The quantized model."""

    def inputs(self, count: int, seed: int = 0) -> NDArray[Any] | Mapping[str, NDArray[Any]]:
        """Typical inputs of shape (count, *shape): one array for the only input, or arrays by input name."""


def network_names() -> list[str]:
    """The names of all example networks; none in an installation without a clone."""
    return sorted(path.parent.name for path in _EXAMPLES.glob(f"*/{_MODULE}"))


def load_network(name: str) -> ExampleNetwork:
    """Load an example network.

    Raises
    ------
    InputError
        There is no such network.
    RunError
        A library that it needs is not installed.
    """
    names = network_names()
    if not names:
        raise InputError(f"the example networks are part of a clone of the repository: there is no {_EXAMPLES}")
    if name not in names:
        raise InputError(f"there is no network {name!r}; there are: {', '.join(names)}")
    root = str(_EXAMPLES.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    try:
        return importlib.import_module(f"{_EXAMPLES.name}.{name}.{Path(_MODULE).stem}").NETWORK
    except ModuleNotFoundError as error:
        raise RunError(f"network {name} needs {error.name}: install it with: pip install 'openmxu[demo]'") from None
