"""Host writer: copies rows of the unified buffer to host memory."""

from amaranth.hdl import Module, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config
from openmxu.rtl.buffer import unified_buffer
from openmxu.rtl.common.counting import Countdown, CreditCounter
from openmxu.rtl.common.interfaces import WritePortSignature
from openmxu.rtl.common.register_slice import RegisterSlice
from openmxu.rtl.common.run_walker import RunWalker
from openmxu.rtl.common.stream_fifo import StreamFIFO
from openmxu.rtl.dispatch.commands import host_command, loads_weights, write_command
from openmxu.rtl.host.burst_generator import BurstGenerator, burst_of
from openmxu.rtl.host.row_packer import RowPacker
from openmxu.rtl.host.row_walker import RowWalker

__all__ = ["HostWriter"]


class HostWriter(wiring.Component):
    """Executes Write_Host_Memory: reads rows ahead and sends them as bursts; and Load_Weights, whose rows go elsewhere.

    Parameters
    ----------
    config
        Sizes of the core.
    is_small
        For cores with few logic cells: transfers are contiguous, and one is taken when it is done, so that its payload
        is stable until then.

    Members
    -------
    commands
        Transfers; one is taken when it starts.
    rows
        Read port of the unified buffer.
    memory
        The host write port.
    weight_rows
        In cores with Load_Weights, its rows. The last row of a tile comes when all transfers before it are done.
    done
        Set for one cycle when the memory has acknowledged the last burst of a transfer, or when the last row of a tile
        has been taken: a cycle later, or at once if ``is_small``.
    """

    rows_ahead = 9
    """Rows read before they are sent; covers the latency of the unified buffer at one row per cycle."""

    runs_ahead = 4
    """Bursts requested before their data is sent."""

    transfers_ahead = 4
    """Transfers started before they are acknowledged."""

    sleeps = True
    """See :mod:`openmxu.rtl.simulation.sleeping_units`."""

    def __init__(self, config: Config, *, is_small: bool = False) -> None:
        self._config = config
        self._is_small = is_small
        super().__init__(
            {
                "commands": In(stream.Signature(write_command(config))),
                "rows": Out(unified_buffer.ReadPortSignature(config)),
                "memory": Out(WritePortSignature(config.host_address_width, config.host_data_bytes)),
                "done": Out(1),
                **({"weight_rows": Out(stream.Signature(8 * config.size))} if loads_weights(config) else {}),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self._is_small:
            self._transfer_one(m)
        else:
            self._transfer_ahead(m)
        return m

    def _transfer_ahead(self, m: Module) -> None:
        """Begin transfers before earlier ones are acknowledged."""
        config = self.config
        rows_width = Shape.cast(host_command(config)["rows"].shape).width

        m.submodules.bursts = bursts = BurstGenerator(config)
        m.submodules.walker = walker = RowWalker(config.unified_buffer_address_width, rows_width)
        # A transfer leaves this queue before that of acknowledgements: when that one has room, so has this one.
        m.submodules.to_read = to_read = StreamFIFO(walker.ranges.p.shape(), self.transfers_ahead, always_ready=True)
        kind = {"to_weights": 1} if loads_weights(config) else {}
        m.submodules.to_acknowledge = to_acknowledge = StreamFIFO(
            data.StructLayout({"bursts": rows_width, **kind}), self.transfers_ahead
        )
        m.submodules.packer = packer = RowPacker(row_bytes=config.size, beat_bytes=config.host_data_bytes)
        m.submodules.places = places = RunWalker(
            rows_width, len(packer.places.p.lane), data.StructLayout(kind) if kind else None
        )
        m.submodules.runs = runs = StreamFIFO(places.runs.p.shape(), self.runs_ahead)
        m.submodules.buffer = buffer = StreamFIFO(8 * config.size, self.rows_ahead, always_ready=True)

        # A command goes to the three parts in the same cycle.
        m.d.comb += [
            bursts.commands.valid.eq(self.commands.valid & to_acknowledge.input.ready),
            to_read.input.valid.eq(self.commands.valid & self.commands.ready),
            to_acknowledge.input.valid.eq(self.commands.valid & bursts.commands.ready),
            Value.cast(bursts.commands.payload).eq(Value.cast(self.commands.payload)),
            to_read.input.p.address.eq(self.commands.p.unified_buffer),
            to_read.input.p.rows.eq(self.commands.p.rows),
            to_read.input.p.is_one.eq(self.commands.p.rows == 1),
            self.commands.ready.eq(bursts.commands.ready & to_acknowledge.input.ready),
        ]
        with m.If(self.commands.p.alternate):
            m.d.comb += to_acknowledge.input.p.bursts.eq(self.commands.p.rows)
        with m.Else():
            m.d.comb += to_acknowledge.input.p.bursts.eq(1)

        connect(m, to_read.output, walker.ranges)
        connect(m, bursts.requests, flipped(self.memory.request))
        connect(m, runs.output, places.runs)
        connect(m, packer.beats, flipped(self.memory.data))
        m.d.comb += [
            runs.input.valid.eq(bursts.runs.valid),
            runs.input.p.rows.eq(bursts.runs.p.rows),
            runs.input.p.lane.eq(bursts.runs.p.lane),
            bursts.runs.ready.eq(runs.input.ready),
            packer.places.payload.eq(places.places.payload),
            packer.places.valid.eq(places.places.valid),
            places.places.ready.eq(packer.places.ready),
            packer.rows.payload.eq(buffer.output.payload),
            packer.rows.valid.eq(buffer.output.valid),
            buffer.output.ready.eq(packer.rows.ready),
        ]

        loaded, awaits_load = Signal(), Signal()
        self._read(m, walker.rows, buffer)
        self._acknowledge(m, to_acknowledge.output, loaded, awaits_load)
        if not loads_weights(config):
            return

        # A tile is a run without a burst: it goes past the burst generator when that has nothing to do.
        to_weights = self.commands.p.to_weights
        with m.If(to_weights):
            m.d.comb += [
                bursts.commands.valid.eq(0),
                to_acknowledge.input.valid.eq(self.commands.valid & bursts.commands.ready & runs.input.ready),
                self.commands.ready.eq(bursts.commands.ready & to_acknowledge.input.ready & runs.input.ready),
            ]
        with m.If(bursts.commands.ready):
            m.d.comb += [
                runs.input.valid.eq(self.commands.valid & to_acknowledge.input.ready & to_weights),
                runs.input.p.rows.eq(config.size),
                runs.input.p.context.to_weights.eq(1),
            ]
        goes, may_go = Signal(), Signal()
        m.d.comb += [
            to_acknowledge.input.p.to_weights.eq(to_weights),
            self.weight_rows.payload.eq(buffer.output.payload),
            may_go.eq(buffer.output.valid & (awaits_load | ~places.places.p.last)),
            self.weight_rows.valid.eq(places.places.valid & places.context.to_weights & may_go),
            goes.eq(self.weight_rows.valid & self.weight_rows.ready),
            loaded.eq(goes & places.places.p.last),
        ]
        with m.If(places.context.to_weights):
            m.d.comb += [
                packer.places.valid.eq(0),
                packer.rows.valid.eq(0),
                places.places.ready.eq(goes),
                buffer.output.ready.eq(goes),
            ]

    def _read(self, m: Module, addresses: stream.Interface, buffer: StreamFIFO) -> None:
        """Read rows, never more than the buffer has room for."""
        credits = CreditCounter(self.rows_ahead)
        requested = Signal()
        left = Signal()
        # The grant of the unified buffer to this reader, which has the lowest priority, is known late in a cycle.
        m.submodules.requests = requests = RegisterSlice(self.rows.request.p.shape())
        connect(m, requests.output, flipped(self.rows.request))
        m.d.comb += [
            requests.input.payload.eq(addresses.p.address),
            requests.input.valid.eq(addresses.valid & credits.has_credit),
            addresses.ready.eq(requests.input.ready & credits.has_credit),
            requested.eq(requests.input.valid & requests.input.ready),
            buffer.input.payload.eq(Value.cast(self.rows.response.payload)),
            buffer.input.valid.eq(self.rows.response.valid),
            left.eq(buffer.output.valid & buffer.output.ready),
        ]
        m.d.sync += credits.step(requested, left)

    def _acknowledge(self, m: Module, transfers: stream.Interface, loaded: Signal, awaits_load: Signal) -> None:
        """Count the acknowledgements of one transfer after the other; ``loaded`` is that of a tile."""
        left = Countdown(transfers.p.bursts.shape(), "unacknowledged")
        active = Signal()
        # Registered, because `done` is known late in a cycle; no acknowledgement comes without a transfer.
        acknowledged = Signal()
        m.d.sync += acknowledged.eq(self.memory.done.valid | loaded)
        m.d.comb += [
            self.memory.done.ready.eq(1),
            transfers.ready.eq(~active | (acknowledged & left.last)),
            self.done.eq(acknowledged & left.last),
        ]
        with m.If(transfers.ready):
            m.d.sync += [active.eq(transfers.valid), *left.start(transfers.p.bursts)]
            if loads_weights(self.config):
                m.d.sync += awaits_load.eq(transfers.valid & transfers.p.to_weights)
        with m.Elif(acknowledged):
            m.d.sync += left.step()

    def _transfer_one(self, m: Module) -> None:
        """Send the rows of a transfer in one burst, one after the other."""
        config, command = self.config, self.commands.p
        m.submodules.packer = packer = RowPacker(row_bytes=config.size, beat_bytes=config.host_data_bytes)
        connect(m, packer.beats, flipped(self.memory.data))
        held = Signal(8 * config.size, reset_less=True)
        requested = Signal()
        index = Signal.like(command.rows)
        address, beats, lane = burst_of(config, command.host, command.rows)
        m.d.comb += [
            self.memory.request.p.address.eq(address),
            self.memory.request.p.beats.eq(beats),
            self.memory.request.valid.eq(self.commands.valid & ~requested),
            packer.places.p.lane.eq(lane + index),
            packer.places.p.last.eq(index + 1 == command.rows),
            packer.rows.payload.eq(held),
            self.rows.request.payload.eq(command.unified_buffer + index),
        ]
        with m.If(self.memory.request.valid & self.memory.request.ready):
            m.d.sync += requested.eq(1)
        with m.FSM():
            with m.State("READ"):
                m.d.comb += self.rows.request.valid.eq(self.commands.valid)
                with m.If(self.commands.valid & self.rows.request.ready):
                    m.next = "HOLD"
            with m.State("HOLD"):
                m.d.sync += held.eq(Value.cast(self.rows.response.payload))
                with m.If(self.rows.response.valid):
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += [packer.places.valid.eq(1), packer.rows.valid.eq(1)]
                with m.If(packer.places.ready):
                    m.d.sync += index.eq(index + 1)
                    m.next = "READ"
                    with m.If(packer.places.p.last):
                        m.d.sync += index.eq(0)
                        m.next = "ACKNOWLEDGE"
            with m.State("ACKNOWLEDGE"):
                m.d.comb += [
                    self.memory.done.ready.eq(1),
                    self.done.eq(self.memory.done.valid),
                    self.commands.ready.eq(self.done),
                ]
                with m.If(self.done):
                    m.d.sync += requested.eq(0)
                    m.next = "READ"
