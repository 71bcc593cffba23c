"""The simulated system as a board at a serial port, whose DRAM is empty."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from openmxu.arch.config import Config
from scripts.litex.ddr3 import simulated_ddr3
from scripts.litex.firmware import firmware
from scripts.litex.simulation import Simulation, build_simulation
from scripts.litex.soc import SimulatedSystem, simulated_sdram

__all__ = ["SimulatedPort", "simulate_board"]

_SLICE = 1000
"""Cycles between looks at what the UART has sent."""


class SimulatedPort:
    """The part of pyserial's ports that the loader uses; time is that of the simulated clock.

    Parameters
    ----------
    simulation
        The system.
    frequency
        Its clock in Hz.
    """

    def __init__(self, simulation: Simulation, frequency: float) -> None:
        self.simulation = simulation
        self.timeout: float | None = None
        self._frequency = frequency
        self._received = bytearray()

    @property
    def in_waiting(self) -> int:
        """Bytes that can be read at once."""
        return len(self._received)

    def read(self, size: int = 1, /) -> bytes:
        """Some bytes; fewer when ``timeout`` is over."""
        end = float("inf") if self.timeout is None else self.simulation.cycles + self.timeout * self._frequency
        while len(self._received) < size and self.simulation.cycles < end:
            self._received += self.simulation.receive(_SLICE)
        data = bytes(self._received[:size])
        del self._received[:size]
        return data

    def write(self, data: bytes, /) -> int:
        """Send bytes."""
        self.simulation.send(data)
        return len(data)


def simulate_board(config: Config, frequency: float, is_ddr3: bool, folder: Path) -> SimulatedPort:
    """Build the system, with SDRAM or DDR3, and return its port; ``frequency`` is in Hz.

    Raises
    ------
    scripts.litex.firmware.FirmwareError
        The firmware cannot be compiled.
    openmxu.sim.verilator.BuildError
        Verilator or the C++ compiler failed.
    """
    dram = simulated_ddr3(frequency) if is_ddr3 else simulated_sdram(frequency, np.zeros(4, np.uint8))
    system = SimulatedSystem(
        frequency, dram, lambda headers: firmware(headers, folder / "firmware"), **config.as_dict()
    )
    return SimulatedPort(build_simulation(system, folder), frequency)
