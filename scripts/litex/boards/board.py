"""The facts about a board that its system and its bitstream need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scripts.litex.soc import Dram

__all__ = ["Board"]


@dataclass(frozen=True)
class Board:
    """A board with DRAM.

    Attributes
    ----------
    name
        Of the command line and of files.
    title
        The board, and what on it is used, for reports.
    device
        The FPGA: LiteX's name, and that of a part of :mod:`scripts.fpga.parts`.
    pins
        LiteX's list of resources; ``serial`` is one of them.
    oscillator
        Name of the resource of the clock input, and its frequency in Hz.
    frequency
        Clock of the system in MHz, unless the command line has another one.
    data_bytes
        Bytes of a beat on the core's memory ports: the width of LiteDRAM's ports, which then need no converter.
    dram_bytes
        Size of the DRAM.
    is_ddr3
        Whether the DRAM's delays are to be found when the system starts.
    clocks
        Makes the module of clocks and reset, of a platform and the system's clock in Hz.
    dram
        Makes LiteDRAM's PHY with the chip behind it, of a platform, the system's clock in Hz, and that module.
    """

    name: str
    title: str
    device: str
    pins: Sequence[Any]
    oscillator: tuple[str, float]
    frequency: float
    data_bytes: int
    dram_bytes: int
    is_ddr3: bool
    clocks: Callable[[Any, float], Any]
    dram: Callable[[Any, float, Any], Dram]
