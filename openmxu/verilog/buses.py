"""The buses that the ports of the AXI shell form."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from openmxu.verilog.rtlil_module import Port

__all__ = ["CLOCK", "INTERRUPT", "RESET", "Bus", "buses_of"]

CLOCK, RESET, INTERRUPT = "aclk", "aresetn", "irq"

_SIGNAL = re.compile(r"^(?P<bus>(?P<side>[sm])_axi(?:_[a-z]+?)?)_(?P<signal>(?:aw|w|b|ar|r)[a-z]+)$")


@dataclass(frozen=True)
class Bus:
    """The ports of one AXI interface.

    Attributes
    ----------
    name
        What its ports begin with.
    is_manager
        Whether it sends addresses.
    signals
        AXI's name of each signal, in lower case, and the port.
    """

    name: str
    is_manager: bool
    signals: dict[str, Port]

    @property
    def is_lite(self) -> bool:
        """Whether it is AXI4-Lite: without bursts."""
        return not {"awlen", "arlen"} & self.signals.keys()

    @property
    def writes(self) -> bool:
        """Whether it has the channels of writes."""
        return "awaddr" in self.signals

    @property
    def data_width(self) -> int:
        """Bits of a beat."""
        return self.signals["rdata"].width

    @property
    def address_width(self) -> int:
        """Bits of an address."""
        return self.signals["araddr"].width


def buses_of(ports: Iterable[Port]) -> tuple[Bus, ...]:
    """The AXI interfaces among ports."""
    buses: dict[str, Bus] = {}
    for port in ports:
        if found := _SIGNAL.match(port.name):
            bus = buses.setdefault(found["bus"], Bus(found["bus"], found["side"] == "m", {}))
            bus.signals[found["signal"]] = port
    return tuple(buses.values())
