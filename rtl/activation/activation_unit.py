"""Activation unit: turns rows of the accumulators or the unified buffer into unified buffer rows."""

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config
from openmxu.rtl.activation.activation_datapath import ActivationDatapath, Finish
from openmxu.rtl.activation.activation_sequencer import ActivationSequencer, sequence_layout
from openmxu.rtl.activation.element_fetcher import ElementFetcher, fetch_layout
from openmxu.rtl.activation.result_writer import ResultWriter, destination_layout
from openmxu.rtl.activation.row_loader import RowLoader
from openmxu.rtl.buffer import unified_buffer
from openmxu.rtl.common.address_generator import AddressGenerator
from openmxu.rtl.common.counting import up_down
from openmxu.rtl.common.register_slice import RegisterSlice
from openmxu.rtl.dispatch.command_queue import CommandQueue
from openmxu.rtl.dispatch.commands import (
    ActivationKind,
    OutputFormat,
    Pooling,
    activation_command,
    activation_start,
    activation_walk,
)

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
    work, queued
        A command, and a one-cycle pulse that queues it. The command is stable from two cycles before the pulse until
        the cycle after it; its operand scale, output and table from three cycles before, its output format from four.
    commands
        The start of each queued command in order, two cycles after ``queued`` at the earliest; taken when its first
        step comes next, or its load is done.
    read, values
        Read port of the accumulators.
    rows
        Read port of the unified buffer.
    results
        Write port of the unified buffer.
    done
        Set for one cycle, ``done_lead`` cycles before the last row of an Activate is written, or when the last byte is
        loaded.
    busy
        Results are still to be written.
    """

    sleeps = True
    """See :mod:`openmxu.rtl.simulation.sleeping_units`."""

    done_lead = ResultWriter.latency + ActivationDatapath.ending_lead
    """As many cycles pass at least until a unit that is told of the end requests a row of the unified buffer."""

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "work": In(activation_command(config)),
                "queued": In(1),
                "commands": In(stream.Signature(activation_start(config))),
                "read": Out(stream.Signature(config.accumulator_address_width)),
                "values": In(data.ArrayLayout(signed(32), config.activation_lanes)),
                "rows": Out(unified_buffer.ReadPortSignature(config)),
                "results": Out(unified_buffer.WritePortSignature(config, always_ready=True)),
                "done": Out(1),
                "busy": Out(1),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    @property
    def heeded(self) -> list[tuple[Value, Value]]:
        """See :mod:`openmxu.rtl.simulation.sleeping_units`."""
        return [(Value.cast(self.values), self._datapath.takes_values)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        m.submodules.walker = walker = AddressGenerator(activation_walk(config))
        m.submodules.fetcher = fetcher = ElementFetcher(config)
        m.submodules.sequencer = sequencer = ActivationSequencer(config)
        m.submodules.datapath = self._datapath = datapath = ActivationDatapath(config)
        m.submodules.writer = writer = ResultWriter(config)
        m.submodules.loader = loader = RowLoader(config)

        command = self.commands.p
        in_flight = Signal(range(config.command_queue_depth + 1))
        is_activate = Signal()
        loads = Signal()
        loaded = Signal()
        has_loaded = self._has_loaded = Signal()
        m.d.comb += [
            is_activate.eq(command.kind == ActivationKind.ACTIVATE),
            walker.walks.valid.eq(self.commands.valid & is_activate),
            walker.walks.payload.eq(command.walk),
            loaded.eq(loader.loads.valid & loader.loads.ready),
            self.commands.ready.eq((is_activate & walker.walks.ready) | loaded),
            self.done.eq(datapath.ending | loaded),
            self.busy.eq(in_flight != 0),
        ]
        # Counted a cycle later, because the handshake is known late in a cycle.
        begun = Signal()
        m.d.sync += [
            begun.eq(walker.walks.valid & walker.walks.ready),
            in_flight.eq(up_down(in_flight, begun, writer.done)),
            loads.eq(self.commands.valid & ~is_activate & (in_flight == 0) & ~begun & ~loaded),
            has_loaded.eq(loaded),
        ]
        first, address = self._distribute(m, fetcher, sequencer, datapath, writer)

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
        ]
        m.d.comb += [
            loader.loads.valid.eq(loads),
            loader.loads.p.unified_buffer.eq(address),
            loader.loads.p.is_table.eq(command.kind == ActivationKind.LOAD_TABLE),
            loader.loads.p.first.eq(first),
            loader.loads.p.table_number.eq(datapath.finishes.p.table_number),
            loader.loads.p.count.eq(command.walk.rows),
            datapath.parameters.eq(loader.parameters),
            datapath.table.eq(loader.table),
        ]
        self._share_rows(m, loads, loader, fetcher)
        return m

    def _distribute(
        self,
        m: Module,
        fetcher: ElementFetcher,
        sequencer: ActivationSequencer,
        datapath: ActivationDatapath,
        writer: ResultWriter,
    ) -> tuple[Value, Value]:
        """Queue the fields of each command that a part needs, until the command's rows reach the part. Returns
        parameter set and address of the oldest command, which a load needs as well."""
        config, work = self.config, self.work
        fetches = Signal(fetch_layout(config))
        sequences = Signal(sequence_layout(config))
        destinations = Signal(destination_layout(config))
        scale = Signal(32, reset_less=True)
        finishes = Signal(Finish, reset_less=True)
        m.d.comb += [
            *(fetches[name].eq(work[name]) for name in ("from_unified_buffer", "operand", "operand_address")),
            fetches.source_wide.eq(work.source_format.wide),
            fetches.operand_wide.eq(work.operand_format.wide),
            fetches.repeats.eq(work.walk.repeats),
            sequences.source_format.eq(work.source_format),
            sequences.operand_format.eq(work.operand_format),
            sequences.parameters.eq(work.parameters),
            sequences.maximum.eq(work.pooling == Pooling.MAX),
            sequences.is_int32.eq(work.output_format == OutputFormat.INT32),
            destinations.first.eq(work.unified_buffer),
            destinations.by_parity.eq(work.walk.by_parity),
        ]
        # In registers: their synchronous set and reset replace logic for each bit. The condition of these is a register
        # too, because the instruction word that it is decoded from is far away on the chip.
        is_int32 = Signal(reset_less=True)
        m.d.sync += [
            is_int32.eq(work.output_format == OutputFormat.INT32),
            scale.eq(work.operand_scale),
            finishes.is_word.eq(work.output_format == OutputFormat.WORD),
            finishes.table.eq(work.table),
            finishes.table_number.eq(work.table_number),
            finishes.output.eq(work.output),
        ]
        with m.If(is_int32):
            m.d.sync += [
                scale.eq(_ONE),
                finishes.output.zero_point.eq(0),
                finishes.output.minimum.eq(0),
                finishes.output.maximum.eq(255),
            ]
        self._queue(m, "fetches", fetches, fetcher.commands)
        self._queue(m, "scales", scale, datapath.operand_scales)
        self._queue(m, "finishes", finishes, datapath.finishes)
        self._queue(m, "sequences", sequences, sequencer.sequences)
        self._queue(m, "destinations", destinations, writer.destinations)
        return sequencer.sequences.p.parameters, writer.destinations.p.first

    def _queue(self, m: Module, name: str, queued: Value, output: stream.Interface) -> None:
        """A queue of commands for one part of the unit, always valid because the part is idle before its command is
        queued. A load needs none of the parts, so its entry is removed from every queue when it is done."""
        m.submodules[name] = queue = CommandQueue(output.p.shape(), self.config.command_queue_depth)
        m.d.comb += [
            Value.cast(queue.command).eq(Value.cast(queued)),
            queue.push.eq(self.queued),
            queue.take.eq(output.ready | self._has_loaded),
            Value.cast(output.payload).eq(Value.cast(queue.oldest)),
            output.valid.eq(1),
        ]

    def _share_rows(self, m: Module, loads: Signal, loader: RowLoader, fetcher: ElementFetcher) -> None:
        """Give the read port to the loader while it works; the fetcher is idle then, with no rows outstanding."""
        # Cuts the path behind the arbitration of the unified buffer.
        m.submodules.requests = requests = RegisterSlice(self.rows.request.p.shape())
        connect(m, requests.output, flipped(self.rows.request))
        request, response = requests.input, self.rows.response
        loading, fetching = loader.rows.request, fetcher.rows.request
        m.d.comb += [
            request.valid.eq((loading.valid & loads) | fetching.valid),
            request.payload.eq(Mux(loads, loading.payload, fetching.payload)),
            loading.ready.eq(request.ready & loads),
            fetching.ready.eq(request.ready),
            loader.rows.response.valid.eq(response.valid & loads),
            loader.rows.response.payload.eq(response.payload),
            fetcher.rows.response.valid.eq(response.valid & ~loads),
            fetcher.rows.response.payload.eq(response.payload),
        ]
