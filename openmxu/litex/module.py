"""The AXI shell as a module of LiteX."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from litex.gen import LiteXModule
from litex.soc.interconnect import axi
from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourceLevel
from migen import ClockSignal, Instance, ResetSignal, Signal
from migen.genlib.cdc import MultiReg

from openmxu.arch.config import Config
from openmxu.arch.registers import ADDRESS_WIDTH
from openmxu.rtl.axi.top import TOP, Top
from openmxu.rtl.fpga.target import Family, Target
from openmxu.rtl.verilog.convert import to_verilog

__all__ = ["OpenMXU"]

_FAMILIES = {"LFE5U": Family.ECP5, "GW1N": Family.GOWIN, "ice40": Family.ICE40}
"""Families by how the names of LiteX's devices begin; every other device is generic."""


class OpenMXU(LiteXModule):
    """The core in its AXI shell, as LiteX's interfaces.

    Parameters
    ----------
    platform
        LiteX's platform, which gets the generated Verilog as a source.
    config
        Sizes of the core.
    clock_domain
        Clock domain of the core and of its interfaces; the interrupt is in ``sys``.
    loops
        Write the array as loops, and let idle units sleep: Verilator compiles faster models of it. Not for synthesis.

    Attributes
    ----------
    config
        Sizes of the core.
    registers
        AXI-Lite subordinate of 32 bits: ``docs/registers.md``.
    host, weights
        AXI managers. Their addresses are those of the bus.
    interrupt
        High while an enabled interrupt of the device is pending.
    ev
        LiteX's event manager with the level ``interrupt``, for ``soc.irq.add``.
    """

    def __init__(self, platform: Any, config: Config, clock_domain: str = "sys", *, loops: bool = False) -> None:
        self.config = config
        self.clock_domain = clock_domain
        self.registers = axi.AXILiteInterface(data_width=32, address_width=32, clock_domain=clock_domain)
        self.host = _manager(config.host_data_bytes, config.host_address_width, clock_domain)
        self.weights = _manager(config.weight_data_bytes, config.weight_address_width, clock_domain)
        self.interrupt = Signal()
        self._platform = platform
        self._loops = loops
        self._top = Top(config)

        self.ev = EventManager()
        self.ev.device = EventSourceLevel(name="device", description="The device's interrupt output.")
        self.ev.finalize()
        pending = Signal()
        if clock_domain == "sys":
            self.comb += self.interrupt.eq(pending)
        else:
            self.specials += MultiReg(pending, self.interrupt)
        self.comb += self.ev.device.trigger.eq(self.interrupt)

        ports: dict[str, Any] = {
            "i_aclk": ClockSignal(clock_domain),
            "i_aresetn": ~ResetSignal(clock_domain),
            "o_irq": pending,
        }
        named = {"s_axi": self.registers, "m_axi_host": self.host, "m_axi_weight": self.weights}
        for name, is_output in _ports(self._top):
            interface, _, signal = name.rpartition("_")
            target = _signal(named[interface], signal)
            if target is None:
                continue
            if name == "s_axi_awaddr" or name == "s_axi_araddr":
                target = target[:ADDRESS_WIDTH]
            ports[f"{'o' if is_output else 'i'}_{name}"] = target
        self.specials += Instance(self.module_name, **ports)

    @property
    def module_name(self) -> str:
        """Name of the Verilog module: cores of different configurations in one system have different names."""
        return f"{TOP}_{self.config.fingerprint[:8]}"

    def write_verilog(self, folder: Path) -> Path:
        """Write the generated Verilog into an existing folder, and return its path."""
        device = str(getattr(self._platform, "device", ""))
        family = next((family for start, family in _FAMILIES.items() if device.startswith(start)), Family.GENERIC)
        path = folder / f"{self.module_name}.v"
        path.write_text(to_verilog(self._top, self.module_name, Target(family), loops=self._loops))
        return path

    def do_finalize(self) -> None:
        """Generate the Verilog into the builder's output folder and add it to the platform's sources."""
        folder = Path(self._platform.output_dir or Path("build") / self._platform.name) / "openmxu"
        folder.mkdir(parents=True, exist_ok=True)
        self._platform.add_source(str(self.write_verilog(folder)))


def _manager(data_bytes: int, address_width: int, clock_domain: str) -> axi.AXIInterface:
    return axi.AXIInterface(
        data_width=8 * data_bytes, address_width=address_width, id_width=1, clock_domain=clock_domain, bursting=True
    )


def _ports(top: Top) -> Iterator[tuple[str, bool]]:
    """Every port of the shell's AXI interfaces, and whether it is an output."""
    for name, member in top.signature.members.items():
        if "_axi_" in name:
            yield name, member.flow.name == "Out"


def _signal(interface: Any, signal: str) -> Any:
    """LiteX's signal for one of AXI's, or ``None`` if its interface has none."""
    for channel in ("aw", "ar", "w", "r", "b"):
        if signal.startswith(channel):
            return getattr(getattr(interface, channel), signal.removeprefix(channel), None)
    return None
