"""ECPIX-5 with an LFE5UM5G-85F and 512 MB of DDR3 at twice the system's clock.

Pins, standards of inputs and outputs, the chip, and the order of clocks and resets are those of LiteX's own target for
this board: ``platforms/lambdaconcept_ecpix5.py`` and ``targets/lambdaconcept_ecpix5.py`` of
https://github.com/litex-hub/litex-boards (BSD-2-Clause, Florent Kermarrec). So is the system's clock, 75 MHz.
"""

from __future__ import annotations

from typing import Any

from litedram.modules import MT41K256M16
from litedram.phy import ECP5DDRPHY
from litex.build.generic_platform import IOStandard, Misc, Pins, Subsignal
from litex.gen import LiteXModule
from litex.soc.cores.clock import ECP5PLL
from migen import ClockDomain, If, Instance, Signal
from migen.genlib.resetsync import AsyncResetSynchronizer

from scripts.litex.boards.board import Board
from scripts.litex.soc import DRAM_RATE, Dram

__all__ = ["ECPIX5"]

_OSCILLATOR = ("clk100", 100e6)

_SINGLE, _PAIR = IOStandard("SSTL15_I"), IOStandard("SSTL15D_I")
_PINS = [
    ("clk100", 0, Pins("K23"), IOStandard("LVCMOS33")),
    ("rst_n", 0, Pins("N5"), IOStandard("LVCMOS33")),
    ("serial", 0, Subsignal("tx", Pins("R24")), Subsignal("rx", Pins("R26")), IOStandard("LVCMOS33")),
    (
        "ddram",
        0,
        Subsignal("a", Pins("T5 M3 L3 V6 K2 W6 K3 L1 H2 L2 N1 J1 M1 K1 H1"), _SINGLE),
        Subsignal("ba", Pins("U6 N3 N4"), _SINGLE),
        Subsignal("ras_n", Pins("T3"), _SINGLE),
        Subsignal("cas_n", Pins("P2"), _SINGLE),
        Subsignal("we_n", Pins("R3"), _SINGLE),
        Subsignal("dm", Pins("U4 U1"), _SINGLE),
        Subsignal("dq", Pins("T4 W4 R4 W5 R6 P6 P5 P4 R1 W3 T2 V3 U3 W1 T1 W2"), _SINGLE, Misc("TERMINATION=75")),
        Subsignal("dqs_p", Pins("V4 V1"), _PAIR, Misc("TERMINATION=OFF"), Misc("DIFFRESISTOR=100")),
        Subsignal("clk_p", Pins("H3"), _PAIR),
        Subsignal("cke", Pins("P1"), _SINGLE),
        Subsignal("odt", Pins("P3"), _SINGLE),
        Misc("SLEWRATE=FAST"),
    ),
]

_POWER_UP_CYCLES = (1 << 16) - 1
"""Of the oscillator, before the PLL leaves reset."""


class _Clocks(LiteXModule):
    """The DRAM's clock from the PLL, the system's divided from it, and a slow one that starts the PHY's delays.

    Attributes
    ----------
    stop, reset
        Of the PHY: it stops the DRAM's clock and resets the divider while it sets its delays.
    """

    def __init__(self, platform: Any, frequency: float) -> None:
        self.cd_init = ClockDomain()
        self.cd_por = ClockDomain()
        self.cd_sys = ClockDomain()
        self.cd_sys2x = ClockDomain()
        self.cd_sys2x_i = ClockDomain()
        self.stop, self.reset = Signal(), Signal()

        oscillator = platform.request(_OSCILLATOR[0])
        left = Signal(max=_POWER_UP_CYCLES + 1, reset=_POWER_UP_CYCLES)
        self.comb += self.cd_por.clk.eq(oscillator)
        self.sync.por += If(left != 0, left.eq(left - 1))

        self.pll = pll = ECP5PLL()
        self.comb += pll.reset.eq((left != 0) | ~platform.request("rst_n"))
        pll.register_clkin(oscillator, _OSCILLATOR[1])
        pll.create_clkout(self.cd_sys2x_i, DRAM_RATE * frequency)
        pll.create_clkout(self.cd_init, 25e6)
        self.specials += [
            Instance("ECLKSYNCB", i_ECLKI=self.cd_sys2x_i.clk, i_STOP=self.stop, o_ECLKO=self.cd_sys2x.clk),
            Instance(
                "CLKDIVF",
                p_DIV=f"{DRAM_RATE}.0",
                i_ALIGNWD=0,
                i_CLKI=self.cd_sys2x.clk,
                i_RST=self.reset,
                o_CDIVX=self.cd_sys.clk,
            ),
            AsyncResetSynchronizer(self.cd_sys, ~pll.locked | self.reset),
        ]


def _dram(platform: Any, frequency: float, clocks: _Clocks) -> Dram:
    phy = ECP5DDRPHY(platform.request("ddram"), frequency)
    clocks.comb += [clocks.stop.eq(phy.init.stop), clocks.reset.eq(phy.init.reset)]
    return Dram(phy, MT41K256M16(frequency, f"1:{DRAM_RATE}"))


ECPIX5 = Board(
    name="ecpix5",
    title="ECPIX-5 with DDR3, LiteX",
    device="LFE5UM5G-85F-8BG554I",
    pins=_PINS,
    oscillator=_OSCILLATOR,
    frequency=75,
    data_bytes=16,
    dram_bytes=512 << 20,
    is_ddr3=True,
    clocks=_Clocks,
    dram=_dram,
)
