"""Host reader: copies rows of host memory to the unified buffer."""

from amaranth.hdl import Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config
from openmxu.rtl.buffer import unified_buffer
from openmxu.rtl.common.interfaces import ReadPortSignature
from openmxu.rtl.common.register_slice import RegisterSlice
from openmxu.rtl.common.run_walker import RunWalker
from openmxu.rtl.common.stream_fifo import StreamFIFO
from openmxu.rtl.dispatch.commands import host_command
from openmxu.rtl.host.burst_generator import BurstGenerator, burst_of
from openmxu.rtl.host.row_unpacker import RowUnpacker
from openmxu.rtl.host.row_walker import RowWalker

__all__ = ["HostReader"]


class HostReader(wiring.Component):
    """Executes Read_Host_Memory: requests bursts ahead and writes the rows that arrive.

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
    memory
        The host read port.
    rows
        Write port of the unified buffer.
    done
        Set for one cycle when the last row of a transfer is written.
    """

    runs_ahead = 4
    """Bursts that may be requested before their data has arrived."""

    sleeps = True
    """See :mod:`openmxu.rtl.simulation.sleeping_units`."""

    def __init__(self, config: Config, *, is_small: bool = False) -> None:
        self._config = config
        self._is_small = is_small
        super().__init__(
            {
                "commands": In(stream.Signature(host_command(config))),
                "memory": Out(ReadPortSignature(config.host_address_width, config.host_data_bytes)),
                "rows": Out(unified_buffer.WritePortSignature(config)),
                "done": Out(1),
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
        """Begin transfers before the data of earlier ones has arrived."""
        config = self.config
        rows_width = Shape.cast(host_command(config)["rows"].shape).width
        m.submodules.bursts = bursts = BurstGenerator(config)
        m.submodules.unpacker = unpacker = RowUnpacker(row_bytes=config.size, beat_bytes=config.host_data_bytes)
        m.submodules.places = places = RunWalker(rows_width, len(unpacker.places.p.lane))
        m.submodules.runs = runs = StreamFIFO(places.runs.p.shape(), self.runs_ahead)
        m.submodules.walker = walker = RowWalker(config.unified_buffer_address_width, rows_width)
        m.submodules.destinations = destinations = StreamFIFO(walker.ranges.p.shape(), self.runs_ahead)

        # A command goes to the burst generator and to the row writer in the same cycle.
        m.d.comb += [
            bursts.commands.payload.eq(self.commands.payload),
            bursts.commands.valid.eq(self.commands.valid & destinations.input.ready),
            destinations.input.p.address.eq(self.commands.p.unified_buffer),
            destinations.input.p.rows.eq(self.commands.p.rows),
            destinations.input.p.is_one.eq(self.commands.p.rows == 1),
            destinations.input.valid.eq(self.commands.valid & bursts.commands.ready),
            self.commands.ready.eq(bursts.commands.ready & destinations.input.ready),
        ]
        connect(m, bursts.requests, flipped(self.memory.request))
        connect(m, bursts.runs, runs.input)
        connect(m, runs.output, places.runs)
        # Places are known long before their beats arrive, so the handshake of a row may reach the walk a cycle later.
        m.submodules.place = place = RegisterSlice(places.places.p.shape())
        connect(m, places.places, place.input)
        connect(m, place.output, unpacker.places)
        connect(m, flipped(self.memory.data), unpacker.beats)
        connect(m, destinations.output, walker.ranges)

        # Two rows can wait for the unified buffer, so that its backpressure does not reach the memory port in the same
        # cycle.
        m.submodules.waiting = waiting = RegisterSlice(
            data.StructLayout(
                {"address": config.unified_buffer_address_width, "row": unified_buffer.row_layout(config), "last": 1}
            )
        )
        m.d.comb += [
            waiting.input.p.address.eq(walker.rows.p.address),
            waiting.input.p.last.eq(walker.rows.p.last),
            Value.cast(waiting.input.p.row).eq(unpacker.rows.payload),
            waiting.input.valid.eq(unpacker.rows.valid & walker.rows.valid),
            unpacker.rows.ready.eq(waiting.input.ready & walker.rows.valid),
            walker.rows.ready.eq(waiting.input.ready & unpacker.rows.valid),
            self.rows.request.p.address.eq(waiting.output.p.address),
            self.rows.request.p.row.eq(waiting.output.p.row),
            self.rows.request.valid.eq(waiting.output.valid),
            waiting.output.ready.eq(self.rows.request.ready),
            self.done.eq(waiting.output.valid & waiting.output.ready & waiting.output.p.last),
        ]

    def _transfer_one(self, m: Module) -> None:
        """Request the rows of a transfer in one burst, and write them as they arrive."""
        config, command = self.config, self.commands.p
        m.submodules.unpacker = unpacker = RowUnpacker(row_bytes=config.size, beat_bytes=config.host_data_bytes)
        connect(m, flipped(self.memory.data), unpacker.beats)
        requested = Signal()
        index = Signal.like(command.rows)
        address, beats, lane = burst_of(config, command.host, command.rows)
        m.d.comb += [
            self.memory.request.p.address.eq(address),
            self.memory.request.p.beats.eq(beats),
            self.memory.request.valid.eq(self.commands.valid & ~requested),
            unpacker.places.p.lane.eq(lane + index),
            unpacker.places.p.last.eq(index + 1 == command.rows),
            unpacker.places.valid.eq(requested),
            self.rows.request.p.address.eq(command.unified_buffer + index),
            Value.cast(self.rows.request.p.row).eq(unpacker.rows.payload),
            self.rows.request.valid.eq(unpacker.rows.valid),
            unpacker.rows.ready.eq(self.rows.request.ready),
            self.done.eq(unpacker.places.ready & unpacker.places.p.last),
            self.commands.ready.eq(self.done),
        ]
        with m.If(unpacker.places.ready):
            m.d.sync += index.eq(Mux(self.done, 0, index + 1))
        with m.If(self.done):
            m.d.sync += requested.eq(0)
        with m.Elif(self.memory.request.valid & self.memory.request.ready):
            m.d.sync += requested.eq(1)
