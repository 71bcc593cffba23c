"""The core in its serial shell, compiled, at a pseudo-terminal: to a driver it looks like a board."""

from __future__ import annotations

import ctypes
import threading
from ctypes import c_int, c_uint32, c_uint64, c_void_p
from types import TracebackType

from openmxu.arch.config import Config
from openmxu.sim.pseudo_terminal import PseudoTerminal
from openmxu.sim.verilator import SERIAL, Design, library_path
from openmxu.sim.verilator.progress import ProgressHook

__all__ = ["SimulatedBoard"]


class SimulatedBoard:
    """A simulated board; its clock runs in a separate thread, slowly while the port is idle.

    The first one of a configuration builds the model, which takes from seconds to minutes; later ones load it from the
    cache. A context manager.

    Parameters
    ----------
    config
        Sizes of the core.
    build_progress
        See :class:`~openmxu.sim.verilated.VerilatedDevice`.
    design
        The design to compile in place of the shell: another component with its ports, or a netlist of it.

    Raises
    ------
    MissingToolError
        A tool that the build needs is not installed; the error says how to get it.
    BuildError
        The build failed.
    """

    def __init__(self, config: Config, *, build_progress: ProgressHook | None = None, design: Design = SERIAL) -> None:
        library = ctypes.CDLL(str(library_path(config, design=design, progress=build_progress)))
        self._functions = {}
        for name, result, arguments in (
            ("create", c_void_p, ()),
            ("destroy", None, (c_void_p,)),
            ("serve", c_uint32, (c_void_p, c_int)),
            ("stop", None, (c_void_p,)),
            ("cycles", c_uint64, (c_void_p,)),
        ):
            function = getattr(library, f"mxu_{name}")
            function.restype, function.argtypes = result, arguments
            self._functions[name] = function
        self._handle: int | None = self._functions["create"]()
        self._wire = PseudoTerminal()
        self._clock = threading.Thread(
            target=self._functions["serve"], args=(self._handle, self._wire.near), name="clock", daemon=True
        )
        self._clock.start()

    @property
    def port(self) -> str:
        """The serial port, until the board is closed."""
        return self._wire.name

    @property
    def cycles(self) -> int:
        """Clock cycles since power-on."""
        return self._functions["cycles"](self._handle)

    def close(self) -> None:
        """Switch the board off."""
        if self._handle is not None:
            self._functions["stop"](self._handle)
            self._clock.join()
            self._wire.close()
            self._functions["destroy"](self._handle)
            self._handle = None

    def __enter__(self) -> SimulatedBoard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
