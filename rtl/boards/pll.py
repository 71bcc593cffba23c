"""Phase-locked loops of the FPGA families: the factors for a frequency, and the PLL block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from amaranth.hdl import Elaboratable, Instance, Module, Signal
from amaranth.lib import io

from openmxu.rtl.fpga.target import Family

__all__ = ["Pll", "PllFactors", "pll_factors"]


@dataclass(frozen=True)
class PllFactors:
    """Factors of a PLL.

    Attributes
    ----------
    frequency
        Frequency of the output, in Hz.
    reference
        Divisor of the input, before the phase comparison.
    feedback
        Multiplier of the input: the divisor of the oscillator, with ``gowin`` of the output, before the comparison.
    output
        Divisor of the oscillator that makes the output.
    oscillator
        Frequency of the oscillator, in Hz.
    """

    frequency: float
    reference: int
    feedback: int
    output: int
    oscillator: float


def pll_factors(family: Family, clock: int, frequency: float) -> PllFactors:
    """The factors that make the highest frequency up to ``frequency``, both in Hz.

    The output is never faster than requested, because the design was placed for that frequency. Of factors that make
    the same frequency, those with the fastest phase comparison are chosen, whose output has the least jitter.

    Raises
    ------
    ValueError
        PLLs of this family cannot make any frequency above half of ``frequency`` and up to ``frequency``.
    """
    found = [factors for factors in _FACTORS[family](clock) if frequency / 2 < factors.frequency <= frequency]
    if not found:
        raise ValueError(f"no PLL of {family.value} makes {frequency / 1e6:g} MHz of {clock / 1e6:g} MHz")
    return max(found, key=lambda factors: (factors.frequency, -factors.reference, factors.oscillator))


def _ecp5(clock: int) -> Iterator[PllFactors]:
    # ECP5 and ECP5-5G Family Data Sheet, FPGA-DS-02012, sysCLOCK PLL timing.
    for reference in range(1, 129):
        if not 10e6 <= clock / reference <= 400e6:
            continue
        for feedback in range(1, 129):
            oscillator = clock * feedback / reference
            if 400e6 <= oscillator <= 800e6:
                for output in range(1, 129):
                    yield PllFactors(oscillator / output, reference, feedback, output, oscillator)


def _ice40(clock: int) -> Iterator[PllFactors]:
    # iCE40 UltraPlus Family Data Sheet, FPGA-DS-02008, sysCLOCK PLL timing.
    for reference in range(1, 17):
        if not 10e6 <= clock / reference <= 133e6:
            continue
        for feedback in range(1, 129):
            oscillator = clock * feedback / reference
            for power in range(1, 7):
                if 533e6 <= oscillator <= 1066e6 and 16e6 <= oscillator / (1 << power) <= 275e6:
                    yield PllFactors(oscillator / (1 << power), reference, feedback, 1 << power, oscillator)


def _gowin(clock: int) -> Iterator[PllFactors]:
    # GW1NR series of FPGA products, data sheet DS117, PLL parameters of speed grade C6/I5.
    for reference in range(1, 65):
        if not 3e6 <= clock / reference <= 400e6:
            continue
        for feedback in range(1, 65):
            frequency = clock * feedback / reference
            for output in (2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128):
                if 400e6 <= frequency * output <= 1200e6 and 3.125e6 <= frequency <= 600e6:
                    yield PllFactors(frequency, reference, feedback, output, frequency * output)


_FACTORS: dict[Family, Callable[[int], Iterator[PllFactors]]] = {
    Family.ECP5: _ecp5,
    Family.ICE40: _ice40,
    Family.GOWIN: _gowin,
}


class Pll(Elaboratable):
    """The PLL block of a family, with given factors, fed from a pin.

    Parameters
    ----------
    family
        Family of the FPGA.
    factors
        See :func:`pll_factors`.
    pin
        Input of the clock: the port that a platform returns for a resource with ``dir="-"``.
    clock
        Frequency of the input, in Hz.

    Attributes
    ----------
    clk
        Output clock.
    locked
        The PLL has locked: the output has its frequency.
    """

    def __init__(self, family: Family, factors: PllFactors, pin: io.SingleEndedPort, clock: int) -> None:
        self._make = {Family.ECP5: self._make_ecp5, Family.ICE40: self._make_ice40, Family.GOWIN: self._make_gowin}[
            family
        ]
        self._factors = factors
        self._pin = pin
        self._clock = clock
        self.clk = Signal()
        self.locked = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.block = self._make(m)
        return m

    def _buffered(self, m: Module) -> Signal:
        m.submodules.pin = buffer = io.Buffer("i", self._pin)
        return buffer.i

    def _make_ecp5(self, m: Module) -> Instance:
        factors = self._factors
        # The first output only divides the oscillator for the phase comparison, so that the second one may divide it by
        # any number.
        compared = Signal()
        return Instance(
            "EHXPLLL",
            p_PLLRST_ENA="DISABLED",
            p_INTFB_WAKE="DISABLED",
            p_STDBY_ENABLE="DISABLED",
            p_DPHASE_SOURCE="DISABLED",
            p_FEEDBK_PATH="CLKOP",
            p_CLKI_DIV=factors.reference,
            p_CLKFB_DIV=1,
            p_CLKOP_ENABLE="ENABLED",
            p_CLKOP_DIV=factors.feedback,
            p_CLKOP_CPHASE=factors.feedback - 1,
            p_CLKOP_FPHASE=0,
            p_CLKOS_ENABLE="ENABLED",
            p_CLKOS_DIV=factors.output,
            p_CLKOS_CPHASE=factors.output - 1,
            p_CLKOS_FPHASE=0,
            a_FREQUENCY_PIN_CLKI=f"{self._clock / 1e6:g}",
            a_FREQUENCY_PIN_CLKOS=f"{factors.frequency / 1e6:g}",
            a_ICP_CURRENT="12",
            a_LPF_RESISTOR="8",
            a_MFG_ENABLE_FILTEROPAMP="1",
            a_MFG_GMCREF_SEL="2",
            i_CLKI=self._buffered(m),
            i_CLKFB=compared,
            o_CLKOP=compared,
            o_CLKOS=self.clk,
            o_LOCK=self.locked,
            **{f"i_{name}": 0 for name in ("RST", "STDBY", "PHASESEL0", "PHASESEL1", "PHASEDIR", "PHASESTEP")},
            **{f"i_{name}": 0 for name in ("PHASELOADREG", "PLLWAKESYNC", "ENCLKOP")},
        )

    def _make_ice40(self, m: Module) -> Instance:
        factors = self._factors
        compared = self._clock / factors.reference
        # The filter that icepll of Project IceStorm chooses for each range of the comparison's frequency.
        limits = (17e6, 26e6, 44e6, 66e6, 101e6)
        return Instance(
            "SB_PLL40_PAD",
            p_FEEDBACK_PATH="SIMPLE",
            p_DIVR=factors.reference - 1,
            p_DIVF=factors.feedback - 1,
            p_DIVQ=factors.output.bit_length() - 1,
            p_FILTER_RANGE=1 + sum(compared >= limit for limit in limits),
            # The PLL can only be fed from the pin next to it, which has no other use then.
            i_PACKAGEPIN=self._pin.io,
            i_RESETB=1,
            i_BYPASS=0,
            o_PLLOUTGLOBAL=self.clk,
            o_LOCK=self.locked,
        )

    def _make_gowin(self, m: Module) -> Instance:
        factors = self._factors
        zeros = {"RESET": 1, "RESET_P": 1, "CLKFB": 1, "FBDSEL": 6, "IDSEL": 6, "ODSEL": 6}
        zeros |= {"PSDA": 4, "DUTYDA": 4, "FDLY": 4}
        return Instance(
            "rPLL",
            p_DEVICE="GW1NR-9C",
            p_FCLKIN=f"{self._clock / 1e6:g}",
            p_IDIV_SEL=factors.reference - 1,
            p_FBDIV_SEL=factors.feedback - 1,
            p_ODIV_SEL=factors.output,
            i_CLKIN=self._buffered(m),
            o_CLKOUT=self.clk,
            o_LOCK=self.locked,
            **{f"i_{name}": Signal(width, name=f"no_{name}") for name, width in zeros.items()},
        )
