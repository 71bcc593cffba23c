"""The system: VexRiscv, LiteDRAM, a UART and the core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from litedram.common import PhySettings
from litedram.modules import W9825G6KH6
from litedram.phy.model import SDRAMPHYModel
from litex.build.generic_platform import Pins, Subsignal
from litex.build.sim.platform import SimPlatform
from litex.gen import LiteXModule
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect.csr import AutoCSR, CSRStatus
from migen import ClockDomain, If, Signal
from numpy.typing import NDArray

from openmxu.litex import add_openmxu

__all__ = [
    *("BAUD", "CAS_LATENCY", "DRAM_BYTES", "DRAM_RATE", "TOP"),
    *("Cycles", "Dram", "Firmware", "SimulatedSystem", "System", "simulated_sdram", "verilog_of"),
]

Firmware = Callable[[Path], Sequence[int]]

TOP = "openmxu_core"
"""Name of the simulated system's top module: the one that Verilator's models are built from."""

CAS_LATENCY = 3
DRAM_RATE = 2
"""Cycles of the DRAM's clock in one of the system's."""

DRAM_BYTES = 32 << 20
BAUD = 1_000_000
ROM_BYTES = 0x8000
SRAM_BYTES = 0x4000


@dataclass(frozen=True)
class Dram:
    """A DRAM.

    Attributes
    ----------
    phy
        LiteDRAM's PHY.
    chip
        LiteDRAM's description of the chip behind it.
    """

    phy: Any
    chip: Any


class Cycles(LiteXModule, AutoCSR):
    """Counts cycles, for the firmware's measurements.

    Parameters
    ----------
    interrupt
        The device's interrupt.
    """

    def __init__(self, interrupt: Signal) -> None:
        self.now = CSRStatus(32, description="Cycles since the reset; wraps.")
        self.interrupt = CSRStatus(32, description="Its value when the device's interrupt rose last.")
        was = Signal()
        self.sync += [
            self.now.status.eq(self.now.status + 1),
            was.eq(interrupt),
            If(interrupt & ~was, self.interrupt.status.eq(self.now.status)),
        ]


class System(SoCCore):
    """A processor with its firmware in ROM, DRAM without a cache in front of it, and the core.

    Parameters
    ----------
    platform
        LiteX's platform.
    frequency
        Clock in Hz.
    dram
        PHY and chip.
    firmware
        Compiles the firmware against the headers in a folder, and returns the words of the ROM.
    uart
        LiteX's name of the kind of UART.
    parameters
        Of :func:`openmxu.litex.add_openmxu`.
    """

    def __init__(
        self, platform: Any, frequency: float, dram: Dram, firmware: Firmware, uart: str, **parameters: Any
    ) -> None:
        super().__init__(
            platform,
            frequency,
            cpu_type="vexriscv",
            cpu_variant="standard",
            ident="openmxu with LiteX",
            integrated_rom_size=ROM_BYTES,
            integrated_sram_size=SRAM_BYTES,
            uart_name=uart,
            uart_baudrate=BAUD,
        )
        self.ddrphy = dram.phy  # LiteDRAM's software knows the PHY's registers by this name
        self.add_sdram("sdram", phy=dram.phy, module=dram.chip, l2_cache_size=0)
        core = add_openmxu(self, **parameters)
        self.cycles = Cycles(core.interrupt)
        self._firmware = firmware

    def init_mems(self, **_: Any) -> None:
        """Called by LiteX's builder once there are headers."""
        words = self._firmware(Path(self.builder.include_dir))
        self.init_rom("rom", words, auto_size=False)  # so that another firmware needs no other hardware


class SimulatedSystem(System):
    """The system with the UART as bytes at its ports, and a model of PHY and chips such as :func:`simulated_sdram`."""

    def __init__(self, frequency: float, dram: Dram, firmware: Firmware, **parameters: Any) -> None:
        ports = [
            ("sys_clk", 0, Pins(1)),
            ("sys_rst", 0, Pins(1)),
            (
                "serial",
                0,
                *(Subsignal(f"source_{name}", Pins(width)) for name, width in _BYTES),
                *(Subsignal(f"sink_{name}", Pins(width)) for name, width in _BYTES),
            ),
        ]
        platform = _Platform("SIM", ports, name=TOP)
        self.cd_sys = ClockDomain()
        super().__init__(platform, frequency, dram, firmware, "sim", loops=True, **parameters)
        self.add_constant("TABLE_IS_PREPARED")  # no board: its DRAM may have an old one after a reset
        self.comb += [
            self.cd_sys.clk.eq(platform.request("sys_clk")),
            self.cd_sys.rst.eq(platform.request("sys_rst")),
        ]


def simulated_sdram(frequency: float, memory: NDArray[np.uint8]) -> Dram:
    """LiteDRAM's model of the ULX3S' SDRAM, with what is in its first bytes when the system starts."""
    settings = PhySettings(
        phytype="HalfRateGENSDRPHY",
        memtype="SDR",
        databits=16,
        dfi_databits=16,
        nranks=1,
        nphases=DRAM_RATE,
        rdphase=0,
        wrphase=0,
        cl=CAS_LATENCY,
        read_latency=(CAS_LATENCY + 1) // DRAM_RATE + 1,
        write_latency=0,
    )
    # LiteDRAM's model spreads the words over its banks.
    words = np.pad(memory, (0, -len(memory) % 4)).view("<u4").tolist()
    chip = W9825G6KH6(frequency, f"1:{DRAM_RATE}")
    return Dram(SDRAMPHYModel(chip, settings, clk_freq=frequency, init=words), chip)


class _Platform(SimPlatform):
    def build(self, system: Any, *, build_dir: str, build_name: str, **_: Any) -> Any:
        """Write the Verilog and the contents of memories; another tool compiles them."""
        verilog = self.get_verilog(system.get_fragment(), name=build_name)
        with chdir(build_dir):
            verilog.write(f"{build_name}.v")
        return verilog.ns


def verilog_of(platform: Any, top: Path) -> str:
    """All modules of a system whose top module is in a file, without comments: they have the time of day."""
    paths = [*(Path(source[0]) for source in platform.sources), top]
    lines = (line for path in paths for line in path.read_text().splitlines() if not line.startswith("//"))
    return "\n".join(lines) + "\n"


_BYTES = (("valid", 1), ("ready", 1), ("data", 8))
