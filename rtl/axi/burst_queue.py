"""Burst queue: holds bursts until they are sent on an address channel, then until their replies have come."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import ceil_log2
from openmxu.rtl.axi.channels import address_layout

__all__ = ["BurstQueue", "tagged_burst_layout"]


def tagged_burst_layout(address_width: int) -> data.StructLayout:
    """A burst as in :func:`~openmxu.rtl.axi.channels.address_layout`, with a bit that is kept for its replies."""
    return data.StructLayout({"addr": address_width, "len": 8, "tag": 1})


class BurstQueue(wiring.Component):
    """A ring buffer of bursts with three pointers: to the entry written next, to the burst sent next, and to the oldest
    burst with replies outstanding. Its distributed RAM has one read port, which serves the address channel; only while
    the oldest burst is looked up, after an error, it reads that one, and nothing is sent.

    Parameters
    ----------
    address_width, data_bytes
        Widths of the bus; addresses are multiples of a beat.
    depth
        Capacity in bursts, sent or not.

    Members
    -------
    bursts
        Taken while there is room.
    addresses
        The address channel, registered.
    valid, tag
        The queue holds a burst; the tag of the oldest one.
    pop
        Remove the oldest burst; only after it has been sent.
    look_up, address
        Read the address of the oldest burst.
    """

    def __init__(self, address_width: int, data_bytes: int, depth: int) -> None:
        self._beat_bits = ceil_log2(data_bytes)
        self._depth = depth
        super().__init__(
            {
                "bursts": In(stream.Signature(tagged_burst_layout(address_width))),
                "addresses": Out(stream.Signature(address_layout(address_width))),
                "valid": Out(1),
                "tag": Out(1),
                "pop": In(1),
                "look_up": In(1),
                "address": Out(address_width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        burst, sent, low = self.bursts.p, self.addresses.p, Const(0, self._beat_bits)
        stored = Cat(burst.len, burst.addr[self._beat_bits :])
        m.submodules.bursts = storage = Memory(shape=len(stored), depth=self._depth, init=[])
        m.submodules.tags = tags = Memory(shape=1, depth=self._depth, init=[])
        write, read = storage.write_port(), storage.read_port(domain="comb")
        write_tag, read_tag = tags.write_port(), tags.read_port(domain="comb")
        produce, send, consume = (Signal.like(read.addr, name=name) for name in ("produce", "send", "consume"))
        has_room = Signal(init=1)
        has_unsent = Signal()
        pushes, sends = Signal(), Signal()
        m.d.comb += [
            pushes.eq(self.bursts.valid & has_room),
            sends.eq(has_unsent & ~self.look_up & (~self.addresses.valid | self.addresses.ready)),
            self.bursts.ready.eq(has_room),
            *(write.addr.eq(produce), write.data.eq(stored), write.en.eq(pushes)),
            *(write_tag.addr.eq(produce), write_tag.data.eq(burst.tag), write_tag.en.eq(pushes)),
            read.addr.eq(Mux(self.look_up, consume, send)),
            self.address.eq(Cat(low, read.data[8:])),
        ]

        def following(place: Value) -> Value:
            return Mux(place == self._depth - 1, 0, place + 1)[: len(place)]

        # The oldest tag is in a register, because the ready of a beat depends on it.
        has_next = Signal()
        m.d.comb += [read_tag.addr.eq(following(consume)), has_next.eq(self.valid & (following(consume) != produce))]
        with m.If(self.pop | ~self.valid):
            m.d.sync += self.tag.eq(Mux(has_next, read_tag.data, burst.tag))

        for place, moves in ((produce, pushes), (send, sends), (consume, self.pop)):
            with m.If(moves):
                m.d.sync += place.eq(following(place))
        m.d.sync += [
            has_room.eq(self.pop | (has_room & ~(pushes & (following(produce) == consume)))),
            has_unsent.eq(pushes | (has_unsent & ~(sends & (following(send) == produce)))),
            self.valid.eq(pushes | (self.valid & ~self.pop) | has_next),
        ]
        with m.If(~self.addresses.valid | self.addresses.ready):
            m.d.sync += [
                self.addresses.valid.eq(has_unsent & ~self.look_up),
                *(sent.len.eq(read.data[:8]), sent.addr.eq(self.address)),
            ]
        return m
