"""The core: all units of openmxu, wired together."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import connect, flipped

from openmxu.arch.config import Config
from openmxu.arch.isa import UNITS, Unit
from openmxu.rtl.activation.activation_unit import ActivationUnit
from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from openmxu.rtl.common.interfaces import CoreSignature, most_host_beats, most_weight_beats
from openmxu.rtl.common.register_slice import RegisterSlice
from openmxu.rtl.dispatch.commands import loads_weights
from openmxu.rtl.dispatch.dispatcher import Dispatcher
from openmxu.rtl.dispatch.management import Management
from openmxu.rtl.dispatch.scoreboard import QueuedUnit
from openmxu.rtl.dispatch.scrubber import Scrubber
from openmxu.rtl.host.host_reader import HostReader
from openmxu.rtl.host.host_writer import HostWriter
from openmxu.rtl.matrix.accumulators import Accumulators, tag_layout
from openmxu.rtl.matrix.matrix_sequencer import MatrixSequencer
from openmxu.rtl.matrix.systolic_array import SystolicArray
from openmxu.rtl.matrix.systolic_data_setup import SystolicDataSetup
from openmxu.rtl.weights.weight_fetcher import WeightFetcher
from openmxu.rtl.weights.weight_fifo import WeightFIFO
from openmxu.rtl.weights.weight_shifter import WeightShifter

__all__ = ["Core"]


class Core(wiring.Component):
    """A matrix accelerator that executes the instruction set of :mod:`openmxu.arch.isa`.

    Host memory → unified buffer → systolic data setup → array → accumulators → activation unit → unified buffer → host
    memory; weight memory → weight fetcher → weight FIFO → array; for products of two activations, unified buffer → host
    writer → weight fetcher. Members: see
    :class:`~openmxu.rtl.common.interfaces.CoreSignature`.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(CoreSignature(config))

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        m.submodules.dispatcher = self._dispatcher = Dispatcher(config)
        m.submodules.scrubber = self._scrubber = Scrubber(config)
        m.submodules.unified_buffer = self._unified_buffer = UnifiedBuffer(
            config, readers=("matrix", "activation", "host"), writers=("results", "host")
        )
        m.submodules.host_reader = self._host_reader = HostReader(config)
        m.submodules.host_writer = self._host_writer = HostWriter(config)
        m.submodules.weight_fetcher = self._weight_fetcher = WeightFetcher(config)
        m.submodules.weight_fifo = self._weight_fifo = WeightFIFO(config)
        m.submodules.weight_shifter = self._weight_shifter = WeightShifter(config)
        m.submodules.matrix_sequencer = self._sequencer = MatrixSequencer(config)
        m.submodules.data_setup = self._data_setup = SystolicDataSetup(config)
        m.submodules.array = self._array = SystolicArray(config)
        m.submodules.accumulators = self._accumulators = Accumulators(config)
        m.submodules.activation_unit = self._activation_unit = ActivationUnit(config)
        m.submodules.management = self._management = Management(config)

        self._connect_streams(m)
        self._connect_weights(m)
        self._connect_matrix(m)
        self._connect_control(m)
        self._count(m)
        return m

    def _connect_streams(self, m: Module) -> None:
        dispatcher, buffer = self._dispatcher, self._unified_buffer
        connect(m, flipped(self.instructions), self._scrubber.instructions)
        # Cuts the path from the source of instructions to the logic that depends on their handshake.
        m.submodules.instruction = self._instruction = instruction = RegisterSlice(
            self.instructions.p.shape(), half_rate=True
        )
        connect(m, self._scrubber.dispatched, instruction.input)
        connect(m, instruction.output, dispatcher.instructions)
        connect(m, dispatcher.events, self._scrubber.happened)
        # Likewise for events: much logic depends on their handshake.
        m.submodules.event = event = RegisterSlice(self.events.p.shape(), half_rate=True)
        connect(m, self._scrubber.events, event.input)
        connect(m, event.output, flipped(self.events))
        connect(m, flipped(self.management), self._management.requests)
        connect(m, self._management.responses, flipped(self.management_response))

        connect(m, dispatcher.host_read, self._host_reader.commands)
        host_beats = most_host_beats(self.config)
        self._slice_requests(m, "host_read", self._host_reader.memory.request, self.host_read.request, host_beats)
        # The unified buffer may stall a row; the slice delays this backpressure by a cycle on its way to the memory.
        m.submodules.host_read_data = slice_ = RegisterSlice(self.host_read.data.p.shape())
        connect(m, flipped(self.host_read.data), slice_.input)
        connect(m, slice_.output, self._host_reader.memory.data)
        connect(m, self._host_reader.rows, buffer.write_host)

        connect(m, dispatcher.host_write, self._host_writer.commands)
        connect(m, self._host_writer.rows, buffer.read_host)
        if loads_weights(self.config):
            connect(m, self._host_writer.weight_rows, self._weight_fetcher.buffer_rows)
        self._slice_requests(m, "host_write", self._host_writer.memory.request, self.host_write.request, host_beats)
        connect(m, self._host_writer.memory.data, flipped(self.host_write.data))
        connect(m, flipped(self.host_write.done), self._host_writer.memory.done)

        connect(m, dispatcher.activation, self._activation_unit.commands)
        m.d.comb += [
            self._activation_unit.work.eq(dispatcher.activation_work),
            self._activation_unit.queued.eq(dispatcher.activation_queued),
        ]
        connect(m, self._activation_unit.read, self._accumulators.read)
        connect(m, self._activation_unit.rows, buffer.read_activation)
        connect(m, self._activation_unit.results, buffer.write_results)
        m.d.comb += self._activation_unit.values.eq(self._accumulators.values)

    def _slice_requests(
        self,
        m: Module,
        name: str,
        unit: stream.Interface,
        port: stream.Interface,
        beats: int,
        half_rate: bool = False,
    ) -> None:
        """Connect a unit's requests, of up to ``beats`` beats, to a memory port through a register slice, so that
        neither side's handshake depends on the other's within a cycle."""
        layout = data.StructLayout({"address": unit.p.address.shape(), "beats": range(beats + 1)})
        m.submodules[f"{name}_request"] = slice_ = RegisterSlice(layout, half_rate=half_rate)
        m.d.comb += [
            slice_.input.valid.eq(unit.valid),
            slice_.input.p.address.eq(unit.p.address),
            slice_.input.p.beats.eq(unit.p.beats),
            unit.ready.eq(slice_.input.ready),
            port.valid.eq(slice_.output.valid),
            port.p.address.eq(slice_.output.p.address),
            port.p.beats.eq(slice_.output.p.beats),
            slice_.output.ready.eq(port.ready),
        ]

    def _connect_weights(self, m: Module) -> None:
        fetcher, fifo, shifter = self._weight_fetcher, self._weight_fifo, self._weight_shifter
        connect(m, self._dispatcher.weights, fetcher.commands)
        weight_beats = most_weight_beats(self.config)
        # A request is for a whole tile: with two or more beats per tile, one request in two cycles is enough.
        self._slice_requests(
            m,
            "weights",
            fetcher.memory.request,
            self.weights.request,
            weight_beats,
            half_rate=self.config.tile_bytes >= 2 * self.config.weight_data_bytes,
        )
        connect(m, fetcher.memory.data, flipped(self.weights.data))
        connect(m, fetcher.rows, fifo.rows)
        if loads_weights(self.config):
            m.d.comb += [
                fifo.slot.eq(fetcher.slot),
                fifo.row.eq(fetcher.row),
                fifo.transposed.eq(fetcher.transposed),
                shifter.transposed.eq(fifo.read_transposed),
            ]
        m.d.comb += [
            shifter.tiles.eq(fifo.tiles),
            shifter.read_data.eq(fifo.read_data),
            fifo.read_enable.eq(shifter.read_enable),
            fifo.read_row.eq(shifter.read_row),
            fifo.drop.eq(shifter.drop),
            fetcher.tile_taken.eq(shifter.drop),
            fetcher.flush.eq(self._dispatcher.flush_weights),
            shifter.discard.eq(self._dispatcher.flush_weights),
            self._dispatcher.weights_settled.eq(fetcher.settled),
            self._dispatcher.weights_empty.eq(~fetcher.busy & (fifo.tiles == 0) & ~shifter.shifting & ~shifter.loaded),
        ]

    def _connect_matrix(self, m: Module) -> None:
        sequencer, setup, array, accumulators = self._sequencer, self._data_setup, self._array, self._accumulators
        read = self._unified_buffer.read_matrix
        connect(m, self._dispatcher.matrix, sequencer.commands)
        connect(m, sequencer.request, read.request)
        m.d.comb += [
            sequencer.tile_coming.eq(self._weight_shifter.tile_coming),
            self._weight_shifter.take.eq(sequencer.take),
            setup.row.eq(read.response.payload),
            setup.format.eq(sequencer.format),
            setup.swap_in.eq(sequencer.swap),
            setup.zero.eq(sequencer.zero),
            array.activations.eq(setup.activations),
            array.swap.eq(setup.swap_out),
            array.weights.eq(self._weight_shifter.weights),
            array.shift.eq(self._weight_shifter.shift),
            accumulators.partial_sums.eq(array.partial_sums),
        ]
        # A tag is delayed like its row in unified buffer, data setup and array, less the accumulators' lead.
        latency = UnifiedBuffer.read_latency + setup.latency + array.latency(self.config) - Accumulators.tag_lead
        tag = sequencer.tag
        for stage in range(latency):
            delayed = Signal(tag_layout(self.config), name=f"tag_{stage}")
            m.d.sync += delayed.eq(tag)
            tag = delayed
        m.d.comb += accumulators.tag.eq(tag)

    def _connect_control(self, m: Module) -> None:
        dispatcher, management, scrubber = self._dispatcher, self._management, self._scrubber
        done = {
            QueuedUnit.HOST_READ: self._host_reader.done,
            QueuedUnit.HOST_WRITE: self._host_writer.done,
            QueuedUnit.MATRIX: self._accumulators.done,
            QueuedUnit.ACTIVATION: self._activation_unit.done,
        }
        self._done = done
        # Registered, because the end of an instruction is known late in its last cycle and has long wires.
        finished = Signal(len(QueuedUnit))
        m.d.sync += finished.eq(Cat(done[unit] for unit in QueuedUnit))
        m.d.comb += [
            dispatcher.done.eq(finished),
            dispatcher.writing.eq(self._accumulators.busy | self._activation_unit.busy),
            dispatcher.windows.eq(management.windows),
            dispatcher.clear_fault.eq(management.clear_fault),
            dispatcher.acknowledge.eq(management.acknowledge),
            dispatcher.scrubs.eq(scrubber.scrubs),
            dispatcher.clear_registers.eq(scrubber.clear),
            scrubber.idle.eq(dispatcher.idle & ~self._instruction.output.valid),
            scrubber.request.eq(management.scrub),
            management.scrubbing.eq(scrubber.pending),
            management.running.eq(dispatcher.running),
            management.faulted.eq(dispatcher.faulted),
            management.waiting.eq(dispatcher.waiting),
            management.units_busy.eq(Cat(self._busy(unit) for unit in UNITS)),
            self.busy.eq(management.units_busy.any()),
            self.finished.eq(finished.any() | dispatcher.retired_other),
            self.waiting.eq(dispatcher.waiting),
            self.index.eq(dispatcher.index),
        ]

    def _busy(self, unit: Unit) -> Signal:
        if unit is Unit.WEIGHT:
            return self._weight_fetcher.busy
        return self._dispatcher.busy[QueuedUnit[unit.name].value]

    def _count(self, m: Module) -> None:
        """Drive the increments of the counters; every cycle of a program is of exactly one of four kinds."""
        dispatcher, sequencer, increments = self._dispatcher, self._sequencer, self._management.increments
        active = Signal()
        waits_for_tile = Signal()
        shifting = Signal()
        other = Signal()
        waits = dispatcher.matrix_waits
        read_weights = dispatcher.weights.valid & dispatcher.weights.ready
        if loads_weights(self.config):
            read_weights = read_weights & ~dispatcher.weights.p.from_buffer
        m.d.comb += [
            active.eq(sequencer.tag.valid),
            waits_for_tile.eq(sequencer.waits_for_tile),
            shifting.eq(self._weight_shifter.shifting),
            other.eq(dispatcher.running & ~active & ~waits_for_tile),
            increments.cycles.eq(dispatcher.running),
            increments.array_active.eq(active),
            increments.weight_stall.eq(waits_for_tile & ~shifting),
            increments.weight_shift.eq(waits_for_tile & shifting),
            increments.non_matrix.eq(other),
            increments.raw_stall.eq(other & (waits[QueuedUnit.ACTIVATION.value] | waits[QueuedUnit.HOST_WRITE.value])),
            increments.input_stall.eq(other & waits[QueuedUnit.HOST_READ.value]),
            increments.retired_read_weights.eq(read_weights),
            increments.retired_other.eq(dispatcher.retired_other),
        ]
        for port, name in (
            (self.host_read.data, "host_read_bytes"),
            (self.host_write.data, "host_write_bytes"),
            (self.weights.data, "weight_bytes"),
        ):
            m.d.comb += increments[name].eq(port.valid & port.ready)
        for unit in UNITS:
            m.d.comb += increments[f"{unit.name.lower()}_busy"].eq(self._busy(unit))
        for queued, done in self._done.items():
            m.d.comb += increments[f"retired_{queued.name.lower()}"].eq(done)
