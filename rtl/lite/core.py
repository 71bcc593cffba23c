"""The core of the lite profile."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from openmxu.arch.config import Config
from openmxu.arch.isa import UNITS, Unit
from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from openmxu.rtl.common.interfaces import CoreSignature
from openmxu.rtl.dispatch.management import Management
from openmxu.rtl.dispatch.scoreboard import QueuedUnit
from openmxu.rtl.host.host_reader import HostReader
from openmxu.rtl.host.host_writer import HostWriter
from openmxu.rtl.lite.accumulators import LiteAccumulators
from openmxu.rtl.lite.array import LiteArray
from openmxu.rtl.lite.compact_activation_unit import CompactActivationUnit
from openmxu.rtl.lite.dispatcher import LiteDispatcher
from openmxu.rtl.lite.matrix_sequencer import LiteMatrixSequencer
from openmxu.rtl.lite.weights import LiteWeights
from openmxu.rtl.matrix.systolic_data_setup import operand_value

__all__ = ["LiteCore"]


class LiteCore(wiring.Component):
    """:class:`openmxu.rtl.core.Core` for the lite profile: the same data path, but one instruction after the other.

    Members: see :class:`~openmxu.rtl.common.interfaces.CoreSignature`. An instruction is taken when it has been
    executed.
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
        m.submodules.dispatcher = self._dispatcher = LiteDispatcher(config)
        m.submodules.unified_buffer = self._unified_buffer = UnifiedBuffer(
            config, readers=("matrix", "activation", "host"), writers=("results", "host"), is_small=True
        )
        m.submodules.host_reader = self._host_reader = HostReader(config, is_small=True)
        m.submodules.host_writer = self._host_writer = HostWriter(config, is_small=True)
        m.submodules.weights = self._weights = LiteWeights(config)
        m.submodules.array = self._array = LiteArray(config)
        m.submodules.accumulators = self._accumulators = LiteAccumulators(config)
        m.submodules.activation_unit = self._activation_unit = CompactActivationUnit(config)
        m.submodules.management = self._management = Management(config, is_small=True)
        # A tag takes the time of its row through unified buffer and array, less the accumulators' lead.
        latency = UnifiedBuffer.small_read_latency + LiteArray.latency(config)
        m.submodules.matrix_sequencer = self._sequencer = LiteMatrixSequencer(
            config, tag_delay=latency - LiteAccumulators.tag_lead
        )

        self._connect_streams(m)
        self._connect_matrix(m)
        self._connect_control(m)
        return m

    def _connect_streams(self, m: Module) -> None:
        dispatcher, buffer = self._dispatcher, self._unified_buffer
        connect(m, flipped(self.instructions), dispatcher.instructions)
        connect(m, dispatcher.events, flipped(self.events))
        connect(m, flipped(self.management), self._management.requests)
        connect(m, self._management.responses, flipped(self.management_response))

        connect(m, dispatcher.host_read, self._host_reader.commands)
        connect(m, self._host_reader.memory, flipped(self.host_read))
        connect(m, self._host_reader.rows, buffer.write_host)

        connect(m, dispatcher.host_write, self._host_writer.commands)
        connect(m, self._host_writer.rows, buffer.read_host)
        connect(m, self._host_writer.memory, flipped(self.host_write))

        connect(m, dispatcher.activation, self._activation_unit.commands)
        connect(m, self._activation_unit.rows, buffer.read_activation)
        connect(m, self._activation_unit.results, buffer.write_results)
        m.d.comb += [
            self._accumulators.row.eq(self._activation_unit.row),
            self._activation_unit.columns.eq(self._accumulators.columns),
        ]

    def _connect_matrix(self, m: Module) -> None:
        dispatcher, weights, sequencer = self._dispatcher, self._weights, self._sequencer
        array, accumulators = self._array, self._accumulators
        read = self._unified_buffer.read_matrix
        connect(m, dispatcher.weights, weights.commands)
        connect(m, weights.memory, flipped(self.weights))
        connect(m, dispatcher.matrix, sequencer.commands)
        connect(m, sequencer.request, read.request)
        # The format stands in the command as long as the instruction takes.
        for lane, byte in enumerate(read.response.payload):
            m.d.comb += array.activations[lane].eq(operand_value(byte, dispatcher.matrix.p.format))
        m.d.comb += [
            weights.flush.eq(dispatcher.flush_weights),
            dispatcher.has_tile.eq(weights.has_tile),
            dispatcher.has_queued_tile.eq(weights.has_queued_tile),
            dispatcher.weight_queue_full.eq(weights.queue_full),
            dispatcher.weights_settled.eq(weights.settled),
            dispatcher.weights_empty.eq(weights.empty),
            weights.pair.eq(sequencer.pair),
            weights.take.eq(sequencer.take),
            sequencer.tile_ready.eq(weights.ready),
            array.weights.eq(weights.operands),
            array.load.eq(sequencer.load),
            accumulators.sums.eq(array.sums),
            accumulators.tag.eq(sequencer.tag),
        ]

    def _connect_control(self, m: Module) -> None:
        dispatcher, management = self._dispatcher, self._management
        done = {
            QueuedUnit.HOST_READ: self._host_reader.done,
            QueuedUnit.HOST_WRITE: self._host_writer.done,
            QueuedUnit.MATRIX: self._accumulators.done,
            QueuedUnit.ACTIVATION: self._activation_unit.done,
        }
        # The next instruction begins cycles after the end of one, so that a register costs nothing but itself.
        finished = Signal(len(QueuedUnit))
        m.d.sync += finished.eq(Cat(done[unit] for unit in QueuedUnit))
        m.d.comb += [
            dispatcher.done.eq(finished),
            dispatcher.windows.eq(management.windows),
            dispatcher.clear_fault.eq(management.clear_fault),
            dispatcher.acknowledge.eq(management.acknowledge),
            management.running.eq(dispatcher.running),
            management.faulted.eq(dispatcher.faulted),
            management.waiting.eq(dispatcher.waiting),
            management.units_busy.eq(Cat(self._busy(unit) for unit in UNITS)),
            self.busy.eq(management.units_busy.any()),
            self.finished.eq(dispatcher.ended),
            self.waiting.eq(dispatcher.waiting),
            self.index.eq(dispatcher.index),
        ]

    def _busy(self, unit: Unit) -> Signal:
        if unit is Unit.WEIGHT:
            return ~self._weights.settled
        return self._dispatcher.busy[QueuedUnit[unit.name].value]
