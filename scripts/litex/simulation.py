"""Builds the simulated system, and runs its firmware until that has sent what it has to say."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import chdir
from ctypes import POINTER, c_char_p, c_uint8, c_uint32, c_uint64, c_void_p
from pathlib import Path

from litex.soc.integration.builder import Builder

from openmxu.sim.verilator import system_library_path
from scripts.litex.soc import TOP, SimulatedSystem, verilog_of

__all__ = ["Simulation", "build_simulation"]

END_OF_TRANSMISSION = 4
"""The byte with which a firmware ends the simulation."""

_HARNESS = Path(__file__).with_name("harness.cpp")
_SLICE = 100_000
"""Cycles between looks at what the UART has sent."""

_ROOM = 4096


def build_simulation(system: SimulatedSystem, folder: Path) -> Simulation:
    """Let LiteX write the system's Verilog and contents of memories into a folder, and compile the Verilog.

    Raises
    ------
    openmxu.sim.verilator.BuildError
        Verilator or the C++ compiler failed.
    """
    builder = Builder(system, output_dir=str(folder), compile_software=False, compile_gateware=False)
    builder.build(build_name=TOP)
    folder = Path(builder.gateware_dir)
    return Simulation(system_library_path(verilog_of(system.platform, folder / f"{TOP}.v"), _HARNESS), folder)


class Simulation:
    """A running system.

    Parameters
    ----------
    library
        Its compiled model.
    memories
        Folder with the contents of its memories.
    """

    def __init__(self, library: Path, memories: Path) -> None:
        functions = ctypes.CDLL(str(library))
        functions.mxu_create.restype = c_void_p
        functions.mxu_destroy.argtypes = [c_void_p]
        functions.mxu_cycles.argtypes, functions.mxu_cycles.restype = [c_void_p], c_uint64
        functions.mxu_run.argtypes = [c_void_p, c_uint64, POINTER(c_uint8), c_uint32]
        functions.mxu_run.restype = c_uint32
        functions.mxu_send.argtypes, functions.mxu_send.restype = [c_void_p, c_char_p, c_uint32], None
        self._functions = functions
        self._bytes = (c_uint8 * _ROOM)()
        # The model reads the files when it begins to run.
        with chdir(memories):
            self._handle = functions.mxu_create()

    @property
    def cycles(self) -> int:
        """Cycles since the reset."""
        return self._functions.mxu_cycles(self._handle)

    def receive(self, cycles: int) -> bytes:
        """What the UART sends in some cycles, or the beginning of it."""
        count = self._functions.mxu_run(self._handle, cycles, self._bytes, _ROOM)
        return bytes(self._bytes[:count])

    def send(self, data: bytes) -> None:
        """Bytes that the UART receives as the simulation goes on."""
        self._functions.mxu_send(self._handle, data, len(data))

    def lines(self, limit: int) -> Iterator[str]:
        """The lines that the firmware sends, until it ends.

        Raises
        ------
        TimeoutError
            It has not ended after ``limit`` cycles; the message has the line that it was sending.
        """
        text = bytearray()
        while self.cycles < limit:
            for byte in self.receive(_SLICE):
                if byte == END_OF_TRANSMISSION:
                    return
                if byte == ord("\n"):
                    yield text.decode("ascii", "replace")
                    text.clear()
                else:
                    text.append(byte)
        raise TimeoutError(f"the firmware has not ended after {limit:,} cycles; its last words: {text.decode()!r}")

    def close(self) -> None:
        """Free the model."""
        if self._handle is not None:
            self._functions.mxu_destroy(self._handle)
            self._handle = None
