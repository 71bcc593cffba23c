"""Burst splitter: splits requests of any length into bursts that AXI allows."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import ceil_log2
from openmxu.rtl.common.interfaces import BEATS_WIDTH, burst_layout
from openmxu.rtl.shell.interfaces import block_beats

__all__ = ["BurstSplitter", "split", "split_burst_layout"]


def split_burst_layout(address_width: int) -> data.StructLayout:
    """A burst as in :func:`~openmxu.rtl.axi.channels.address_layout`; ``last`` marks the last one of its request."""
    return data.StructLayout({"addr": address_width, "len": 8, "last": 1})


def split(address: int, beats: int, data_bytes: int) -> list[tuple[int, int]]:
    """Model of :class:`BurstSplitter`: address and number of beats of each burst of a request."""
    block = block_beats(data_bytes)
    bursts = []
    while beats:
        length = min(beats, block - address // data_bytes % block)
        bursts.append((address, length))
        address, beats = address + length * data_bytes, beats - length
    return bursts


class BurstSplitter(wiring.Component):
    """Splits at multiples of the longest burst, so that all bursts of a request but the first and the last one have
    full length and none crosses 4 KiB; one burst per cycle.

    Parameters
    ----------
    address_width
        Bits of a byte address.
    data_bytes
        Bytes of a beat.
    most_beats
        Largest number of beats of a request.

    Members
    -------
    requests
        Requests of the core, see :func:`~openmxu.rtl.common.interfaces.burst_layout`.
    offset
        Added to addresses, a multiple of 4096; sums wrap.
    bursts
        The bursts of the requests, in order.
    flush
        While set, requests are discarded, except for a burst that is offered already.
    """

    def __init__(self, address_width: int, data_bytes: int, most_beats: int = (1 << BEATS_WIDTH) - 1) -> None:
        self._address_width = address_width
        self._data_bytes = data_bytes
        self._beats_width = most_beats.bit_length()
        super().__init__(
            {
                "requests": In(stream.Signature(burst_layout(address_width))),
                "offset": In(address_width),
                "bursts": Out(stream.Signature(split_burst_layout(address_width))),
                "flush": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        beat_bits = ceil_log2(self._data_bytes)
        block_bits = ceil_log2(block_beats(self._data_bytes))
        request, burst = self.requests.p, self.bursts.p
        first_block = beat_bits + block_bits

        active = Signal()
        base = Signal(self._address_width - first_block, reset_less=True)  # block of the first beat
        place = Signal(block_bits, reset_less=True)  # of the next beat in its block
        end_place = Signal(block_bits, reset_less=True)  # after the last beat; 0 at the end of a block
        # Block of the next beat, counted from the first one, and the number of block ends up to the request's end.
        block = Signal(max(self._beats_width, block_bits) + 1 - block_bits, reset_less=True)
        ends_left = Signal.like(block)
        is_last = Signal()
        taken = Signal()
        m.d.comb += [
            taken.eq(self.bursts.valid & self.bursts.ready),
            self.requests.ready.eq(~active | (taken & is_last)),
            self.bursts.valid.eq(active),
            burst.addr.eq(Cat(Const(0, beat_bits), place, (base + block)[: len(base)])),
            burst.len.eq((Mux(is_last, end_place, 0) + ~place)[:block_bits]),
            burst.last.eq(is_last),
        ]
        beat = request.address[beat_bits:first_block]
        first_end_place, first_ends_left = Signal.like(end_place), Signal.like(ends_left)
        end = beat + request.beats[: self._beats_width]
        m.d.comb += [first_end_place.eq(end[:block_bits]), first_ends_left.eq(end[block_bits:])]
        with m.If(self.requests.ready):
            m.d.sync += [
                # Multiples of 4096 do not change the place in a block.
                base.eq((request.address + self.offset)[first_block : self._address_width]),
                *(active.eq(self.requests.valid & ~self.flush), place.eq(beat), block.eq(0)),
                *(end_place.eq(first_end_place), ends_left.eq(first_ends_left)),
                # Computed a cycle ahead, because the ready of requests depends on it.
                is_last.eq((first_ends_left == 0) | ((first_ends_left == 1) & (first_end_place == 0))),
            ]
        with m.Elif(taken):
            m.d.sync += [
                *(active.eq(~self.flush), place.eq(0), block.eq(block + 1), ends_left.eq(ends_left - 1)),
                is_last.eq((ends_left == 1) | ((ends_left == 2) & (end_place == 0))),
            ]
        return m
