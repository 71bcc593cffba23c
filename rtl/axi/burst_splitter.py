"""Burst splitter: requests of any length become bursts that AXI allows."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import ceil_log2
from openmxu.rtl.axi.channels import BURST_BEATS, PAGE_BYTES
from openmxu.rtl.common.interfaces import BEATS_WIDTH, burst_layout

__all__ = ["BurstSplitter", "block_beats", "split", "split_burst_layout"]


def block_beats(data_bytes: int) -> int:
    """The longest burst for beats of ``data_bytes``; no burst crosses a multiple of it."""
    return min(BURST_BEATS, PAGE_BYTES // data_bytes)


def split_burst_layout(address_width: int) -> data.StructLayout:
    """A burst as in :func:`~openmxu.rtl.axi.channels.address_layout`; ``last`` marks the last one of its request."""
    return data.StructLayout({"addr": address_width, "len": 8, "last": 1})


def split(address: int, beats: int, data_bytes: int) -> list[tuple[int, int]]:
    """Address and number of beats of the bursts that a request becomes: what :class:`BurstSplitter` computes."""
    block = block_beats(data_bytes)
    bursts = []
    while beats:
        length = min(beats, block - address // data_bytes % block)
        bursts.append((address, length))
        address, beats = address + length * data_bytes, beats - length
    return bursts


class BurstSplitter(wiring.Component):
    """Splits at multiples of the longest burst, so that all bursts of a request but the first and the last one have
    full length and none crosses 4 KiB; one request per cycle, and one burst of a longer request every other cycle.

    Parameters
    ----------
    address_width
        Of byte addresses.
    data_bytes
        Of a beat.

    Members
    -------
    requests
        As the core makes them, see :func:`~openmxu.rtl.common.interfaces.burst_layout`.
    offset
        Added to addresses, a multiple of 4096; sums wrap.
    bursts
        In order.
    flush
        While set, requests are forgotten, but for a burst that is offered already.
    """

    def __init__(self, address_width: int, data_bytes: int) -> None:
        self._address_width = address_width
        self._data_bytes = data_bytes
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
        block = block_beats(self._data_bytes)
        block_bits = ceil_log2(block)

        # One of these is set: no request; a burst is offered; what comes after one that was taken is to be found out.
        idle = Signal(init=1)
        offers = Signal()
        steps = Signal()
        fits = Signal(reset_less=True)  # the burst is the last one of its request
        address = Signal(self._address_width - beat_bits, reset_less=True)  # of the next beat, in beats
        beats_left = Signal(BEATS_WIDTH, reset_less=True)
        room = Signal(range(1, block + 1), reset_less=True)  # up to the next block
        m.d.comb += [
            self.bursts.p.addr.eq(Cat(Const(0, beat_bits), address)),
            self.bursts.p.len.eq(Mux(fits, beats_left, room)[: len(room)] - 1),
            self.bursts.p.last.eq(fits),
            self.bursts.valid.eq(offers),
            self.requests.ready.eq(idle | (offers & fits & self.bursts.ready)),
        ]

        def end_in_block(place: Value, beats: Value) -> Value:
            """Whether so many beats, one or more, from a place in a block on do not leave it."""
            # Place and beats less one; the sum with all ones costs a gate and no carry chain before the other sum.
            first, second = (Cat(value[: block_bits + 1], Const(0, 1)) for value in (Cat(place, Const(0, 1)), beats))
            last = (~(first ^ second) + ((first | second) << 1))[: block_bits + 2]
            return ~last[block_bits:].any() & ~beats[block_bits + 1 :].any()

        with m.If(self.requests.ready):
            # Multiples of 4096 do not change the place in a block.
            place = self.requests.p.address[beat_bits : beat_bits + block_bits]
            comes = self.requests.valid & ~self.flush
            m.d.sync += [
                *(idle.eq(~comes), offers.eq(comes), fits.eq(end_in_block(place, self.requests.p.beats))),
                address.eq((self.requests.p.address + self.offset)[beat_bits : self._address_width]),
                beats_left.eq(self.requests.p.beats),
                room.eq(block - place),
            ]
        with m.Elif(steps):
            m.d.sync += [steps.eq(0), idle.eq(self.flush), offers.eq(~self.flush)]
            m.d.sync += fits.eq(beats_left <= block)
        with m.Elif(offers & self.bursts.ready):
            m.d.sync += [
                *(offers.eq(0), steps.eq(~self.flush), idle.eq(self.flush)),
                *(address.eq(address + room), beats_left.eq(beats_left - room), room.eq(block)),
            ]
        return m
