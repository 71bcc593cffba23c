"""Read manager: requests of several clients on the read channels of one AXI interface."""

from collections.abc import Sequence

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import ceil_log2
from openmxu.rtl.axi.burst_splitter import BurstSplitter, block_beats
from openmxu.rtl.axi.channels import ReadChannelsSignature, address_layout, read_data_layout
from openmxu.rtl.common.interfaces import ReadPortSignature
from openmxu.rtl.common.register_slice import RegisterSlice
from openmxu.rtl.common.stream_fifo import StreamFIFO

__all__ = ["ReadManager", "read_error_layout"]


def read_error_layout(address_width: int, clients: int) -> data.StructLayout:
    """A beat that came with an error: the number of its client, the reply, and the address of its burst."""
    return data.StructLayout({"client": _number_width(clients), "resp": 2, "addr": address_width})


def _number_width(clients: int) -> int:
    return max(1, ceil_log2(clients))


class ReadManager(wiring.Component):
    """Asks for bursts ahead and gives each beat to the client whose it is. All outputs to the bus come from
    registers, and what comes from the bus goes into such.

    Beats come in the order of the requests, so that a client that does not take its own keeps others from theirs: each
    must only ask for what it can take whatever becomes of the others.

    Parameters
    ----------
    address_width, data_bytes
        Of the clients' ports and of the bus.
    clients
        Names; of those that wait, the first one comes next.
    outstanding
        Bursts on their way at the same time, at most.
    beats_ahead
        A burst is asked for while fewer beats than this are on their way, as known a cycle later: enough for a memory
        of that many cycles of latency, and a bound for how long a client waits behind another.

    Members
    -------
    client_<name>, offset_<name>
        The port of each client, and what is added to its addresses, a multiple of 4096.
    bus
        AXI.
    errors
        Beats that came with an error, a cycle later; the client gets them like others.
    flush
        While set, requests are forgotten, but for bursts that wait to be asked for, and data that comes is dropped.
    idle
        Nothing is on its way.
    """

    def __init__(
        self,
        address_width: int,
        data_bytes: int,
        *,
        clients: Sequence[str],
        outstanding: int = 16,
        beats_ahead: int = 256,
    ) -> None:
        self._address_width = address_width
        self._data_bytes = data_bytes
        self._clients = tuple(clients)
        self._outstanding = outstanding
        self._beats_ahead = beats_ahead
        error = read_error_layout(address_width, len(self._clients))
        super().__init__(
            {
                **{f"client_{name}": In(ReadPortSignature(address_width, data_bytes)) for name in self._clients},
                **{f"offset_{name}": In(address_width) for name in self._clients},
                "bus": Out(ReadChannelsSignature(address_width, data_bytes)),
                "errors": Out(stream.Signature(error, always_ready=True)),
                "flush": In(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        burst = data.StructLayout({"client": _number_width(len(self._clients)), "addr": self._address_width})
        m.submodules.addresses = addresses = RegisterSlice(address_layout(self._address_width))
        m.submodules.on_their_way = on_their_way = StreamFIFO(burst, self._outstanding)
        m.submodules.oldest = oldest = RegisterSlice(burst)
        m.submodules.beats = beats = RegisterSlice(read_data_layout(self._data_bytes))
        connect(m, addresses.output, flipped(self.bus.ar))
        connect(m, on_their_way.output, oldest.input)
        connect(m, flipped(self.bus.r), beats.input)
        arrives = Signal()
        m.d.comb += [
            arrives.eq(beats.output.valid & beats.output.ready),
            oldest.output.ready.eq(arrives & beats.output.p.last),
        ]
        waits = self._ask(m, addresses.input, on_their_way.input, arrives)
        m.d.comb += self.idle.eq(~on_their_way.output.valid & ~oldest.output.valid & ~waits)
        self._deliver(m, oldest.output, beats.output, arrives)
        return m

    def _ask(self, m: Module, addresses: stream.Interface, on_their_way: stream.Interface, arrives: Signal) -> Value:
        """Send the burst of the first client that has one; returns whether there is one."""
        # What was asked for and what came in the cycle before is not counted yet: the sum is long.
        beats_left = Signal(range(self._beats_ahead + 2 * block_beats(self._data_bytes)))
        beats_asked = Signal(range(block_beats(self._data_bytes) + 1))
        arrived = Signal()
        may_ask = Signal()
        asks = Signal()
        m.d.comb += may_ask.eq(addresses.ready & on_their_way.ready & (beats_left < self._beats_ahead))
        taken = Const(0, 1)
        waits = Const(0, 1)
        for number, name in enumerate(self._clients):
            splitter = BurstSplitter(self._address_width, self._data_bytes)
            m.submodules[f"splitter_{name}"] = splitter
            # Whose turn it is takes as long to find out as where a burst ends.
            m.submodules[f"bursts_{name}"] = bursts = RegisterSlice(splitter.bursts.p.shape())
            connect(m, flipped(getattr(self, f"client_{name}").request), splitter.requests)
            connect(m, splitter.bursts, bursts.input)
            mine = Signal(name=f"{name}_asks")
            m.d.comb += [
                splitter.offset.eq(getattr(self, f"offset_{name}")),
                splitter.flush.eq(self.flush),
                mine.eq(bursts.output.valid & ~taken & may_ask),
                bursts.output.ready.eq(mine),
            ]
            with m.If(mine):
                m.d.comb += asks.eq(1)
            with m.If(bursts.output.valid & ~taken):
                m.d.comb += [
                    addresses.p.addr.eq(bursts.output.p.addr),
                    addresses.p.len.eq(bursts.output.p.len),
                    on_their_way.p.client.eq(number),
                ]
            taken = taken | bursts.output.valid
            waits = waits | splitter.bursts.valid | bursts.output.valid
        m.d.comb += [
            addresses.valid.eq(asks),
            on_their_way.valid.eq(asks),
            on_their_way.p.addr.eq(addresses.p.addr),
        ]
        m.d.sync += [
            beats_asked.eq(Mux(asks, addresses.p.len + 1, 0)),
            arrived.eq(arrives),
            beats_left.eq(beats_left + beats_asked - arrived),
        ]
        return waits

    def _deliver(self, m: Module, burst: stream.Interface, beats: stream.Interface, arrives: Signal) -> None:
        """Give the beat that has come to the client of its burst."""
        for number, name in enumerate(self._clients):
            port = getattr(self, f"client_{name}").data
            m.d.comb += port.payload.eq(beats.p.data)
            with m.If((burst.p.client == number) & burst.valid & ~self.flush):
                m.d.comb += [port.valid.eq(beats.valid), beats.ready.eq(port.ready)]
        with m.If(self.flush):
            m.d.comb += beats.ready.eq(burst.valid)
        # Whoever looks at them may be far away.
        m.d.sync += [
            self.errors.valid.eq(arrives & beats.p.resp[1]),
            self.errors.p.client.eq(burst.p.client),
            self.errors.p.resp.eq(beats.p.resp),
            self.errors.p.addr.eq(burst.p.addr),
        ]
