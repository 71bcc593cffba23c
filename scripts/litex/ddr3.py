"""A model of DDR3 behind a PHY whose read delays are to be found, as those of ECP5's are."""

from __future__ import annotations

from functools import reduce
from operator import or_

from litedram.common import PhySettings, get_sys_latency, get_sys_phase
from litedram.modules import MT41K256M16
from litedram.phy.dfi import Interface
from litedram.phy.model import SDRAMPHYModel
from litex.gen import LiteXModule
from litex.soc.interconnect.csr import CSR, AutoCSR, CSRStatus, CSRStorage
from migen import If, Signal

from scripts.litex.soc import DRAM_RATE, Dram

__all__ = ["simulated_ddr3"]

_LANES = 2
_DATA_BITS = 8 * _LANES
_CAS_LATENCY, _CAS_WRITE_LATENCY = 6, 5
_DELAYS, _BITSLIPS = 8, 4
_WORKING = ((1, range(2, 6)), (2, range(4, 8)))
"""For each lane of 8 bits the bitslip and the delays with which it reads what was written."""


def simulated_ddr3(frequency: float) -> Dram:
    """LiteDRAM's model of DDR3 with the registers of its PHY for ECP5, empty at the start.

    It has fewer rows than the ECPIX-5's chip, which would take 512 MB of this machine. Settings are those of the PHY:
    eight beats of 16 bits for a command.
    """
    chip = _Chip(frequency, f"1:{DRAM_RATE}")
    read, write = (get_sys_latency(DRAM_RATE, cycles) for cycles in (_CAS_LATENCY, _CAS_WRITE_LATENCY))
    settings = PhySettings(
        phytype="ECP5DDRPHY",
        memtype="DDR3",
        databits=_DATA_BITS,
        dfi_databits=4 * _DATA_BITS,
        nranks=1,
        nphases=DRAM_RATE,
        rdphase=get_sys_phase(DRAM_RATE, read, _CAS_LATENCY),
        wrphase=get_sys_phase(DRAM_RATE, write, _CAS_WRITE_LATENCY),
        cl=_CAS_LATENCY,
        cwl=_CAS_WRITE_LATENCY,
        read_latency=read + 10,
        write_latency=write,
        read_leveling=True,
        bitslips=_BITSLIPS,
        delays=_DELAYS,
    )
    return Dram(_Phy(SDRAMPHYModel(chip, settings, clk_freq=frequency)), chip)


class _Chip(MT41K256M16):
    nrows = 2048


class _Phy(LiteXModule, AutoCSR):
    """Inverts what a lane reads unless its delay and its bitslip are right; registers as those of ``ECP5DDRPHY``."""

    def __init__(self, chips: SDRAMPHYModel) -> None:
        self._dly_sel = CSRStorage(_LANES)
        self._rdly_dq_rst = CSR()
        self._rdly_dq_inc = CSR()
        self._rdly_dq_bitslip_rst = CSR()
        self._rdly_dq_bitslip = CSR()
        self._burstdet_clr = CSR()
        self._burstdet_seen = CSRStatus(_LANES)

        self.chips, self.settings, self.module = chips, chips.settings, chips.module
        address, banks = len(chips.dfi.phases[0].address), len(chips.dfi.phases[0].bank)
        self.dfi = Interface(address, banks, 1, self.settings.dfi_databits, DRAM_RATE)
        for phase, inner in zip(self.dfi.phases, chips.dfi.phases, strict=True):
            self.comb += phase.connect(inner, omit={"rddata", "rddata_valid"})
            # The model only sets that of the first phase; a PHY sets all of them.
            self.comb += phase.rddata_valid.eq(chips.dfi.phases[0].rddata_valid)

        for lane, (right_slip, right_delays) in enumerate(_WORKING):
            delay, slip, is_right = Signal(max=_DELAYS), Signal(max=_BITSLIPS), Signal()
            selected = self._dly_sel.storage[lane]
            self.sync += [
                If(selected & self._rdly_dq_inc.re, delay.eq(delay + 1)),
                If(selected & self._rdly_dq_rst.re, delay.eq(0)),
                If(selected & self._rdly_dq_bitslip.re, slip.eq(slip + 1)),
                If(selected & self._rdly_dq_bitslip_rst.re, slip.eq(0)),
                If(self.dfi.phases[0].rddata_valid, self._burstdet_seen.status[lane].eq(1)),
                If(self._burstdet_clr.re, self._burstdet_seen.status[lane].eq(0)),
            ]
            self.comb += is_right.eq((slip == right_slip) & reduce(or_, (delay == value for value in right_delays)))
            for phase, inner in zip(self.dfi.phases, chips.dfi.phases, strict=True):
                for beat in range(4):
                    bits = slice(beat * _DATA_BITS + 8 * lane, beat * _DATA_BITS + 8 * lane + 8)
                    self.comb += If(is_right, phase.rddata[bits].eq(inner.rddata[bits])).Else(
                        phase.rddata[bits].eq(~inner.rddata[bits])
                    )
