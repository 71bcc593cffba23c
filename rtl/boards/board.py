"""The boards: the hardware of each, and the core of its bitstream."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openmxu.arch.config import Config
from openmxu.arch.serial import DEFAULT_BAUD
from openmxu.rtl.fpga.target import Family

if TYPE_CHECKING:
    from amaranth.build import Platform

__all__ = ["BOARDS", "Board"]


@dataclass(frozen=True)
class Board:
    """A board without a processor, with a computer at its serial port.

    Attributes
    ----------
    name
        Name, in lower case.
    module, platform
        Module and class that describe its pins, in amaranth_boards or beside this file.
    family
        Family of its FPGA.
    part
        Part number of its FPGA.
    leds
        Signals that each LED shows: it is on while one of them is set.
    config
        Sizes of the core in its bitstream, unless others are requested.
    frequency
        Clock frequency of that core, in MHz; the PLL makes the highest frequency that it can up to this.
    usb
        The chip between the serial port and USB.
    usb_baud
        The highest rate of that chip, in bits per second.
    baud
        Bits per second of the serial port, unless others are requested.
    """

    name: str
    module: str
    platform: str
    family: Family
    part: str
    leds: tuple[tuple[str, ...], ...]
    config: Config
    frequency: float
    usb: str
    usb_baud: int
    baud: int = DEFAULT_BAUD

    def make_platform(self, **options: str) -> Platform:
        """The platform of the board, with its FPGA's family as target."""
        return getattr(importlib.import_module(self.module), self.platform)(**options)

    def check_baud(self, baud: int) -> None:
        """Check that the USB chip can make this rate.

        Raises
        ------
        ValueError
            It cannot.
        """
        if baud > self.usb_baud:
            raise ValueError(f"the {self.usb} of {self.name} makes up to {self.usb_baud} baud, not {baud}")


_EACH = (("running",), ("faulted",), ("active",))

BOARDS = {
    board.name: board
    for board in (
        Board(
            name="ulx3s_85f",
            module="amaranth_boards.ulx3s",
            platform="ULX3S_85F_Platform",
            family=Family.ECP5,
            part="LFE5U-85F-6BG381C",
            leds=_EACH,
            config=Config.for_size(8),
            frequency=75.0,
            usb="FT231X",
            usb_baud=3_000_000,
        ),
        Board(
            name="icebreaker",
            module="amaranth_boards.icebreaker",
            platform="ICEBreakerPlatform",
            family=Family.ICE40,
            part="iCE40UP5K-SG48",
            leds=(("faulted",), ("running", "active")),  # a red one and a green one
            config=Config.preset("icebreaker"),
            frequency=21.0,
            usb="FT2232H",
            usb_baud=12_000_000,
        ),
        Board(
            name="tang_nano_9k",
            module="amaranth_boards.tang_nano_9k",
            platform="TangNano9kPlatform",
            family=Family.GOWIN,
            part="GW1NR-LV9QN88PC6/I5",
            leds=_EACH,
            config=Config.preset("tang_nano_9k"),
            frequency=54.0,
            usb="BL702",
            usb_baud=3_000_000,
        ),
    )
}
"""Every board, by its name."""
