"""The core of the dense profile."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from openmxu.arch.config import Config
from openmxu.arch.isa import UNITS, Unit
from openmxu.rtl.compact_activation_unit import CompactActivationUnit
from openmxu.rtl.dense.accumulators import DenseAccumulators
from openmxu.rtl.dense.dispatcher import DenseDispatcher
from openmxu.rtl.dense.host_reader import DenseHostReader
from openmxu.rtl.dense.host_writer import DenseHostWriter
from openmxu.rtl.dense.management import DenseManagement
from openmxu.rtl.dense.matrix_sequencer import DenseMatrixSequencer
from openmxu.rtl.interfaces import CoreSignature
from openmxu.rtl.scoreboard import QueuedUnit
from openmxu.rtl.systolic_array import SystolicArray
from openmxu.rtl.systolic_data_setup import SystolicDataSetup
from openmxu.rtl.unified_buffer import UnifiedBuffer
from openmxu.rtl.weight_fetcher import WeightFetcher
from openmxu.rtl.weight_fifo import WeightFIFO
from openmxu.rtl.weight_shifter import WeightShifter

__all__ = ["DenseCore"]


class DenseCore(wiring.Component):
    """:class:`openmxu.rtl.core.Core` for the dense profile: the same data path, but one instruction after the other.

    Members: see :class:`~openmxu.rtl.interfaces.CoreSignature`. An instruction is taken when it has been executed.
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
        m.submodules.dispatcher = self._dispatcher = DenseDispatcher(config)
        m.submodules.unified_buffer = self._unified_buffer = UnifiedBuffer(
            config, readers=("matrix", "activation", "host"), writers=("results", "host")
        )
        m.submodules.host_reader = self._host_reader = DenseHostReader(config)
        m.submodules.host_writer = self._host_writer = DenseHostWriter(config)
        m.submodules.weight_fetcher = self._weight_fetcher = WeightFetcher(config)
        m.submodules.weight_fifo = self._weight_fifo = WeightFIFO(config)
        m.submodules.weight_shifter = self._weight_shifter = WeightShifter(config)
        m.submodules.data_setup = self._data_setup = SystolicDataSetup(config)
        m.submodules.array = self._array = SystolicArray(config)
        m.submodules.accumulators = self._accumulators = DenseAccumulators(config)
        m.submodules.activation_unit = self._activation_unit = CompactActivationUnit(config)
        m.submodules.management = self._management = DenseManagement(config)
        # A tag takes the time of its row through unified buffer, data setup and array, less the accumulators' lead.
        latency = UnifiedBuffer.read_latency + self._data_setup.latency + self._array.latency(config)
        m.submodules.matrix_sequencer = self._sequencer = DenseMatrixSequencer(
            config, tag_delay=latency - DenseAccumulators.tag_lead
        )

        self._connect_streams(m)
        self._connect_weights(m)
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

    def _connect_weights(self, m: Module) -> None:
        fetcher, fifo, shifter = self._weight_fetcher, self._weight_fifo, self._weight_shifter
        connect(m, self._dispatcher.weights, fetcher.commands)
        connect(m, fetcher.memory, flipped(self.weights))
        connect(m, fetcher.rows, fifo.rows)
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
            sequencer.tile_ready.eq(self._weight_shifter.tile_ready),
            self._weight_shifter.take.eq(sequencer.take),
            setup.row.eq(read.response.payload),
            setup.format.eq(sequencer.format),
            setup.swap.eq(sequencer.swap),
            array.activations.eq(setup.activations),
            array.swap.eq(setup.skewed_swap),
            array.weights.eq(self._weight_shifter.weights),
            array.shift.eq(self._weight_shifter.shift),
            accumulators.partial_sums.eq(array.partial_sums),
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
            return self._weight_fetcher.busy
        return self._dispatcher.busy[QueuedUnit[unit.name].value]
