"""Activation unit: rows of accumulators or unified buffer become unified buffer rows."""

from amaranth.hdl import Module, Mux, ShapeLike, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config
from openmxu.rtl.activation import activation_datapath
from openmxu.rtl.activation.activation_datapath import ActivationDatapath, Finish
from openmxu.rtl.activation.activation_sequencer import ActivationSequencer, sequence_layout
from openmxu.rtl.activation.element_fetcher import ElementFetcher, fetch_layout
from openmxu.rtl.activation.result_writer import ResultWriter
from openmxu.rtl.activation.row_loader import RowLoader
from openmxu.rtl.buffer import unified_buffer
from openmxu.rtl.common.plane_walker import PlaneWalker
from openmxu.rtl.common.register_slice import RegisterSlice
from openmxu.rtl.common.stream_fifo import StreamFIFO
from openmxu.rtl.dispatch.commands import ActivationKind, OutputFormat, Pooling, activation_command, activation_walk

__all__ = ["ActivationUnit"]

_ONE = 0x3F800000
"""1.0 as a float32."""


class ActivationUnit(wiring.Component):
    """Executes Activate, LOAD_PARAMETERS and LOAD_TABLE.

    A walker goes through the windows of an Activate, a fetcher brings the unified buffer rows that they need, and a
    sequencer sends row after row through L lanes, instruction after instruction without a gap: S/L cycles for each
    position of a window and each byte of the result, and as many for a second operand.

    Members
    -------
    commands
        Taken when their first step comes next, or their load is done.
    read, values
        Of the accumulators.
    rows
        Read port of the unified buffer.
    results
        Write port of the unified buffer.
    done
        Set for one cycle when the last row of an Activate is written, or the last byte loaded.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "commands": In(stream.Signature(activation_command(config))),
                "read": Out(stream.Signature(config.accumulator_address_width)),
                "values": In(data.ArrayLayout(signed(32), config.activation_lanes)),
                "rows": Out(unified_buffer.ReadPortSignature(config)),
                "results": Out(unified_buffer.WritePortSignature(config)),
                "done": Out(1),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    @property
    def rows_in_flight(self) -> int:
        """Results that may be on their way: enough for one every S/L cycles."""
        return 2 + -(-(activation_datapath.latency(self.config) + 5) // self.config.column_groups)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        m.submodules.walker = walker = PlaneWalker(activation_walk(config))
        m.submodules.fetcher = fetcher = ElementFetcher(config)
        m.submodules.sequencer = sequencer = ActivationSequencer(config, rows_in_flight=self.rows_in_flight)
        m.submodules.datapath = datapath = ActivationDatapath(config)
        m.submodules.writer = writer = ResultWriter(config, rows=self.rows_in_flight)
        m.submodules.loader = loader = RowLoader(config)

        command = self.commands.p
        in_flight = Signal(range(config.command_queue_depth + 1))
        is_activate = Signal()
        begins = Signal()
        has_begun = Signal()
        loads = Signal()
        loaded = Signal()
        m.d.comb += [
            is_activate.eq(self.commands.valid & (command.kind == ActivationKind.ACTIVATE)),
            begins.eq(is_activate & ~has_begun & (in_flight != config.command_queue_depth)),
            # Only an Activate begins, and it stands until it is taken.
            walker.walks.valid.eq(has_begun),
            walker.walks.payload.eq(command.walk),
            loaded.eq(loader.loads.valid & loader.loads.ready),
            self.commands.ready.eq((walker.walks.valid & walker.walks.ready) | loaded),
            self.done.eq(writer.done | loaded),
        ]
        m.d.sync += [
            in_flight.eq(in_flight + begins - writer.done),
            loads.eq(self.commands.valid & ~is_activate & (in_flight == 0) & ~loaded),
        ]
        with m.If(begins):
            m.d.sync += has_begun.eq(1)
        with m.Elif(walker.walks.ready):
            m.d.sync += has_begun.eq(0)

        # Each part takes what it needs of a command when the command's rows come to it. The queues are filled before
        # the walker takes the command, because that is known late in a cycle.
        fetches = self._queue(m, "fetches", begins, fetch_layout(config), fetcher.commands)
        sequences = self._queue(m, "sequences", begins, sequence_layout(config), sequencer.sequences)
        scales = self._queue(m, "scales", begins, 32, datapath.operand_scales)
        finishes = self._queue(m, "finishes", begins, Finish, datapath.finishes)
        addresses = self._queue(m, "addresses", begins, config.unified_buffer_address_width, writer.addresses)
        is_int32 = command.output_format == OutputFormat.INT32
        m.d.comb += [
            *(fetches[name].eq(command[name]) for name in ("from_unified_buffer", "operand", "operand_address")),
            fetches.source_wide.eq(command.source_format.wide),
            fetches.operand_wide.eq(command.operand_format.wide),
            fetches.repeats.eq(command.walk.repeats),
            sequences.source_format.eq(command.source_format),
            sequences.operand_format.eq(command.operand_format),
            sequences.parameters.eq(command.parameters),
            sequences.maximum.eq(command.pooling == Pooling.MAX),
            sequences.is_int32.eq(is_int32),
            scales.eq(Mux(is_int32, _ONE, command.operand_scale)),
            finishes.is_word.eq(command.output_format == OutputFormat.WORD),
            finishes.table.eq(command.table),
            addresses.eq(command.unified_buffer),
        ]
        with m.If(is_int32):
            m.d.comb += finishes.output.maximum.eq(255)
        with m.Else():
            m.d.comb += finishes.output.eq(command.output)

        connect(m, walker.steps, fetcher.steps)
        connect(m, fetcher.passes, sequencer.passes)
        connect(m, sequencer.read, flipped(self.read))
        connect(m, writer.results, flipped(self.results))
        m.d.comb += [
            datapath.beat.eq(sequencer.beat),
            datapath.low.eq(fetcher.low),
            datapath.high.eq(fetcher.high),
            datapath.values.eq(self.values),
            writer.bytes.eq(datapath.results),
            sequencer.written.eq(writer.written),
        ]
        m.d.comb += [
            loader.loads.valid.eq(loads),
            loader.loads.p.unified_buffer.eq(command.unified_buffer),
            loader.loads.p.is_table.eq(command.kind == ActivationKind.LOAD_TABLE),
            loader.loads.p.first.eq(command.parameters),
            loader.loads.p.count.eq(command.walk.rows),
            datapath.parameters.eq(loader.parameters),
            datapath.table.eq(loader.table),
        ]
        self._share_rows(m, loads, loader, fetcher)
        return m

    def _queue(
        self, m: Module, name: str, begins: Signal, shape: ShapeLike, output: stream.Interface
    ) -> Signal | data.View:
        """A queue from each command in flight to a part of the unit; returns what goes in when a command begins."""
        m.submodules[name] = queue = StreamFIFO(shape, self.config.command_queue_depth)
        m.d.comb += queue.input.valid.eq(begins)
        connect(m, queue.output, output)
        return queue.input.payload

    def _share_rows(self, m: Module, loads: Signal, loader: RowLoader, fetcher: ElementFetcher) -> None:
        """The read port is the loader's while it works; the fetcher then has nothing to do, nor do rows come for it."""
        # Keeps the arbitration of the unified buffer apart from what follows from it.
        m.submodules.requests = requests = RegisterSlice(self.rows.request.p.shape())
        connect(m, requests.output, flipped(self.rows.request))
        request, response = requests.input, self.rows.response
        loading, fetching = loader.rows.request, fetcher.rows.request
        m.d.comb += [
            request.valid.eq(Mux(loads, loading.valid, fetching.valid)),
            request.payload.eq(Mux(loads, loading.payload, fetching.payload)),
            loading.ready.eq(request.ready & loads),
            fetching.ready.eq(request.ready & ~loads),
            loader.rows.response.valid.eq(response.valid & loads),
            loader.rows.response.payload.eq(response.payload),
            fetcher.rows.response.valid.eq(response.valid & ~loads),
            fetcher.rows.response.payload.eq(response.payload),
        ]
