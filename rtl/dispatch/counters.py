"""Counters: 64-bit totals in block RAM, updated one after the other by one adder."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.events import Counter
from openmxu.rtl.common.comparison import is_less

__all__ = ["WORD_BITS", "Counters", "increments_layout"]

WORD_BITS = 32
"""Bits of half a total: a row of the memory."""

_RECENT_BITS = 6
"""Bits of the counters in flip-flops: none may go once round between two visits of its total."""

_NEIGHBOUR_BITS = 2
_NEIGHBOURS = 1 << _NEIGHBOUR_BITS
"""Counters among which one is selected in a cycle."""


def increments_layout() -> data.StructLayout:
    """One bit for each counter: increment it in this cycle, counters of bytes by a beat."""
    return data.StructLayout({counter.name.lower(): 1 for counter in Counter})


class Counters(wiring.Component):
    """Counts exactly, and shows one total after the other.

    The lowest bits of every total are a short counter in flip-flops. A round visits total after total, two cycles each:
    it takes the short counter as the lowest bits and, if that is less than at the last visit, carries into the bits
    above. A half is shown on its way back to memory.

    Members
    -------
    increments
        See :func:`increments_layout`; counted from the next cycle on.
    clear
        Set all totals to 0; increments in this cycle are lost. Totals are 0 after a reset as well.
    number
        The counter to show.
    shows
        One bit each: ``word`` is the low half, the high half of that counter; once in a round, one after the other.
    word
        Half a total; beats are converted to bytes.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "increments": In(increments_layout()),
                "clear": In(1),
                "number": In(range(len(Counter))),
                "shows": Out(2),
                "word": Out(WORD_BITS),
            }
        )

    @property
    def round_cycles(self) -> int:
        """Cycles in which every total is visited once."""
        return 2 * len(Counter)

    def elaborate(self, platform: object) -> Module:
        assert self.round_cycles < 1 << _RECENT_BITS
        m = Module()
        # A reset also sets `clear`, so that these registers need no reset of their flip-flops.
        recent = [Signal(_RECENT_BITS, name=f"recent_{counter.name.lower()}", reset_less=True) for counter in Counter]
        for counter, value in zip(Counter, recent, strict=True):
            with m.If(self.increments[counter.name.lower()]):
                m.d.sync += value.eq(value + 1)
            with m.If(self.clear):
                m.d.sync += value.eq(0)

        # Position of the round: a total, and its half. The first round zeroes the memory.
        place = Signal(range(2 * len(Counter)), reset_less=True)
        clears = Signal(init=1, reset_less=True)
        m.d.sync += place.eq(place + 1)
        with m.If(place == self.round_cycles - 1):
            m.d.sync += [place.eq(0), clears.eq(0)]
        with m.If(self.clear):
            m.d.sync += [place.eq(0), clears.eq(1)]

        m.submodules.totals = totals = Memory(shape=WORD_BITS, depth=2 * len(Counter), init=[])
        read, write = totals.read_port(), totals.write_port()
        stage_shape = data.StructLayout({"place": place.shape(), "clears": 1})
        stages = [Signal(stage_shape, name=f"stage_{number}", reset_less=True) for number in range(1, 4)]
        written = Signal.like(place, reset_less=True)
        m.d.comb += read.addr.eq(place)
        m.d.sync += [stages[0].place.eq(place), stages[0].clears.eq(clears)]
        m.d.sync += [stages[1].eq(stages[0]), stages[2].eq(stages[1]), written.eq(stages[2].place)]

        # The word goes from the memory into a register; in parallel, the short counter is selected in two steps. The
        # next cycle compares them, and the one after it adds.
        left, chosen = Signal(WORD_BITS, reset_less=True), Signal(_RECENT_BITS, reset_less=True)
        old, low = Signal(WORD_BITS, reset_less=True), Signal(_RECENT_BITS, reset_less=True)
        wraps, carry = Signal(reset_less=True), Signal(reset_less=True)
        neighbours = []
        for first in range(0, len(recent), _NEIGHBOURS):
            one = Signal(_RECENT_BITS, name=f"recent_from_{first}", reset_less=True)
            m.d.sync += one.eq(Array(recent[first : first + _NEIGHBOURS])[place[1:][:_NEIGHBOUR_BITS]])
            neighbours.append(one)
        m.d.sync += [
            *(left.eq(read.data), chosen.eq(Array(neighbours)[stages[0].place[1 + _NEIGHBOUR_BITS :]])),
            *(old.eq(left), low.eq(chosen)),
            wraps.eq(~stages[1].place[0] & is_less(chosen, left[:_RECENT_BITS])),
        ]
        is_high = stages[2].place[0]
        total = Signal(WORD_BITS + 1)
        new = Signal(WORD_BITS, reset_less=True)
        m.d.comb += total.eq(old + Cat(is_high & carry, Const(0, _RECENT_BITS - 1), wraps))
        m.d.sync += [carry.eq(total[WORD_BITS]), new.eq(total)]
        with m.If(~is_high):
            m.d.sync += new[:_RECENT_BITS].eq(low)
        with m.If(stages[2].clears):
            m.d.sync += [carry.eq(0), new[_RECENT_BITS:].eq(0)]
            with m.If(is_high):
                m.d.sync += new[:_RECENT_BITS].eq(0)
        m.d.comb += [write.addr.eq(written), write.data.eq(new), write.en.eq(1)]

        self._show(m, written, new)
        return m

    def _show(self, m: Module, place: Signal, half: Signal) -> None:
        """Show halves on their way to the memory, with beats converted to bytes."""
        shifts = {
            Counter.HOST_READ_BYTES: ceil_log2(self._config.host_data_bytes),
            Counter.HOST_WRITE_BYTES: ceil_log2(self._config.host_data_bytes),
            Counter.WEIGHT_BYTES: ceil_log2(self._config.weight_data_bytes),
        }
        number, is_high = place[1:], place[0]
        # The low half's uppermost bits, for the high one.
        before = Signal(max(shifts.values()), reset_less=True)
        m.d.sync += before.eq(half[WORD_BITS - len(before) :])
        m.d.comb += [
            self.word.eq(half),
            self.shows.eq(Mux(number == self.number, Mux(is_high, 0b10, 0b01), 0)),
        ]
        for shift in set(shifts.values()):
            of_shift = [counter for counter, value in shifts.items() if value == shift]
            with m.If(Cat(number == counter for counter in of_shift).any()):
                m.d.comb += self.word.eq(Cat(Mux(is_high, before[len(before) - shift :], 0), half[: WORD_BITS - shift]))
