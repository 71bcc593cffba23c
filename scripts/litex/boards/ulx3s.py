"""ULX3S with an LFE5U-85F and 32 MB of SDRAM at twice the system's clock."""

from __future__ import annotations

from typing import Any

from litedram.modules import W9825G6KH6
from litedram.phy import HalfRateGENSDRPHY
from litex.build.generic_platform import IOStandard, Misc, Pins, Subsignal
from litex.build.io import DDROutput
from litex.gen import LiteXModule
from litex.soc.cores.clock import ECP5PLL
from migen import ClockDomain, ClockSignal

from scripts.litex.boards.board import Board
from scripts.litex.soc import CAS_LATENCY, DRAM_BYTES, DRAM_RATE, Dram

__all__ = ["ULX3S"]

_OSCILLATOR = ("clk25", 25e6)

_FAST = (Misc("PULLMODE=NONE"), Misc("DRIVE=4"), Misc("SLEWRATE=FAST"), IOStandard("LVCMOS33"))
_PINS = [
    ("clk25", 0, Pins("G2"), IOStandard("LVCMOS33")),
    ("rst", 0, Pins("R1"), Misc("PULLMODE=DOWN"), IOStandard("LVCMOS33")),
    ("serial", 0, Subsignal("tx", Pins("L4")), Subsignal("rx", Pins("M1")), IOStandard("LVCMOS33")),
    ("sdram_clock", 0, Pins("F19"), *_FAST),
    (
        "sdram",
        0,
        Subsignal("a", Pins("M20 M19 L20 L19 K20 K19 K18 J20 J19 H20 N19 G20 G19")),
        Subsignal("dq", Pins("J16 L18 M18 N18 P18 T18 T17 U20 E19 D20 D19 C20 E18 F18 J18 J17")),
        Subsignal("we_n", Pins("T20")),
        Subsignal("ras_n", Pins("R20")),
        Subsignal("cas_n", Pins("T19")),
        Subsignal("cs_n", Pins("P20")),
        Subsignal("cke", Pins("F20")),
        Subsignal("ba", Pins("P19 N20")),
        Subsignal("dm", Pins("U19 E20")),
        *_FAST,
    ),
]


class _Clocks(LiteXModule):
    """The system's clock, that of the DRAM's controller at its pins, and that of the DRAM, half a cycle later."""

    def __init__(self, platform: Any, frequency: float) -> None:
        self.cd_sys = ClockDomain()
        self.cd_sys2x = ClockDomain()
        self.cd_sys2x_ps = ClockDomain(reset_less=True)
        self.pll = pll = ECP5PLL()
        self.comb += pll.reset.eq(platform.request("rst"))
        pll.register_clkin(platform.request(_OSCILLATOR[0]), _OSCILLATOR[1])
        pll.create_clkout(self.cd_sys, frequency)
        pll.create_clkout(self.cd_sys2x, DRAM_RATE * frequency)
        pll.create_clkout(self.cd_sys2x_ps, DRAM_RATE * frequency, phase=180, with_reset=False)
        self.specials += DDROutput(1, 0, platform.request("sdram_clock"), ClockSignal("sys2x_ps"))


def _dram(platform: Any, frequency: float, _: _Clocks) -> Dram:
    phy = HalfRateGENSDRPHY(platform.request("sdram"), frequency, cl=CAS_LATENCY)
    return Dram(phy, W9825G6KH6(frequency, f"1:{DRAM_RATE}"))


ULX3S = Board(
    name="ulx3s",
    title="ULX3S with SDRAM, LiteX",
    device="LFE5U-85F-6BG381C",
    pins=_PINS,
    oscillator=_OSCILLATOR,
    frequency=60,
    data_bytes=4,
    dram_bytes=DRAM_BYTES,
    is_ddr3=False,
    clocks=_Clocks,
    dram=_dram,
)
