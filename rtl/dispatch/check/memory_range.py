"""Memory range: the bytes of host or weight memory that an instruction touches, compared with their window."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch import isa
from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.isa import Opcode
from openmxu.rtl.dispatch.instruction_fields import field_of
from openmxu.rtl.fpga.carry_chain import chained_sum

__all__ = ["MemoryRange", "MemoryWindows"]


class MemoryWindows(data.StructLayout):
    """Byte addresses that the driver allows: from ``base`` up to, but not including, ``limit``."""

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "host_base": config.host_address_width,
                "host_limit": config.host_address_width + 1,
                "weight_base": config.weight_address_width,
                "weight_limit": config.weight_address_width + 1,
            }
        )


class MemoryRange(wiring.Component):
    """Computes the end of the bytes that one word touches, and compares them with the window of their memory.

    An alternate transfer spans ``(rows - 1) * stride + S`` bytes, multiplied with one bit of the rows per cycle.
    Addresses and strides of a legal word are multiples of their alignment, so that their lowest bits are taken as
    zeros.

    Members
    -------
    load, new_word
        Load registers from ``new_word``; the last word counts.
    start
        Set in the first cycle without ``load``.
    stride
        Host stride from the configuration registers.
    windows
        See :class:`MemoryWindows`.
    done
        From the cycle after ``start`` on: the members below are valid in the next cycle.
    end
        End of the bytes, if they lie in the address space.
    outside
        A byte is outside the window.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "load": In(1),
                "new_word": In(isa.WORD_BITS),
                "start": In(1),
                "stride": In(32),
                "windows": In(MemoryWindows(config)),
                "done": Out(1),
                "end": Out(max(config.host_address_width, config.weight_address_width) + 1),
                "outside": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, new = self._config, self.new_word
        low = ceil_log2(min(config.host_alignment, config.weight_alignment))
        size, tile = ceil_log2(config.size), ceil_log2(config.tile_bytes)
        width = len(self.end) - low
        # Single bits of the opcode distinguish the words that touch these memories.
        reads_weights, is_alternate = Signal(reset_less=True), Signal()
        new_reads_weights, new_is_alternate = new[5], new[4] & ~new[5] & new[0]
        address = field_of(new, Opcode.READ_HOST_MEMORY, "host")
        rows = field_of(new, Opcode.READ_HOST_MEMORY, "rows")[: config.unified_buffer_address_width + 1]
        tiles = field_of(new, Opcode.READ_WEIGHTS, "tiles")
        first_bytes = Mux(new_reads_weights, tiles << tile, Mux(new_is_alternate, config.size, rows << size))[low:]
        beyond_host, beyond_weights = (
            address[address_width:].any() for address_width in (config.host_address_width, config.weight_address_width)
        )

        # `end` begins at the address. The first addend is added for every word; the stride follows, doubled each cycle.
        end, addend = Signal(width, reset_less=True), Signal(width, reset_less=True)
        beyond, lost = Signal(reset_less=True), Signal(reset_less=True)
        has_more = Signal()
        left = Signal(len(rows), reset_less=True)
        adds = Signal(reset_less=True)
        total = chained_sum(
            m,
            platform,
            "total",
            [Cat(end, Const(0, 1)), adds, Cat(addend, Const(0, 1))],
            first=lambda end, adds, addend: end,
            second=lambda end, adds, addend: addend & adds,
        )
        m.d.sync += has_more.eq(self.start | left[1:].any())
        m.d.sync += adds.eq(self.load | (is_alternate & Mux(self.start, left[0], left[1])))
        with m.If(self.load):
            m.d.sync += [
                reads_weights.eq(new_reads_weights),
                is_alternate.eq(new_is_alternate),
                end.eq(address[low:]),
                addend.eq(first_bytes),
                beyond.eq(Mux(new_reads_weights, beyond_weights, beyond_host) | first_bytes[width:].any()),
                lost.eq(0),
                left.eq(rows - 1),
            ]
        with m.Else():
            m.d.sync += [end.eq(total), beyond.eq(beyond | total[width] | (adds & lost))]
            with m.If(self.start):
                m.d.sync += [addend.eq(self.stride[low:]), lost.eq(self.stride[low + width :].any())]
            with m.Else():
                m.d.sync += [addend.eq(addend << 1), lost.eq(lost | addend[-1]), left.eq(left >> 1)]
        m.d.comb += [
            self.done.eq(~is_alternate | ~has_more),
            self.end.eq(Cat(Const(0, low), end)),
        ]

        # The address is compared with the window's base before anything is added to it.
        windows = self.windows
        bases, limits = (windows.host_base, windows.weight_base), (windows.host_limit, windows.weight_limit)
        is_before = self._less(m, platform, "base", bases, reads_weights, carry=0)
        is_behind = ~self._less(m, platform, "limit", limits, reads_weights, carry=1)
        before = Signal(reset_less=True)
        with m.If(self.start):
            m.d.sync += before.eq(is_before)
        m.d.comb += self.outside.eq(before | is_behind | beyond)
        return m

    def _less(
        self, m: Module, platform: object, name: str, edges: tuple[Value, Value], reads_weights: Value, *, carry: int
    ) -> Value:
        """Whether ``end`` is less than an edge of the window of host or weight memory; with a carry, less or equal."""
        width = len(self.end) + 1
        host, weights = (Cat(edge, Const(0, width - len(edge))) for edge in edges)
        difference = chained_sum(
            m,
            platform,
            name,
            [Cat(self.end, Const(0, 1)), reads_weights, host, weights],
            first=lambda end, is_weight, host, weight: ~end,
            second=lambda end, is_weight, host, weight: (host & ~is_weight) | (weight & is_weight),
            carry=carry,
        )
        return ~difference[-1]
