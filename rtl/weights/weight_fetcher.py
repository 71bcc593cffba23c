"""Weight fetcher: brings tiles of weight memory and of the unified buffer into the weight FIFO, ahead of their use."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config, ceil_log2
from openmxu.rtl.common.counting import Countdown, CreditCounter
from openmxu.rtl.common.interfaces import ReadPortSignature
from openmxu.rtl.common.register_slice import RegisterSlice, StreamRegister
from openmxu.rtl.common.run_walker import RunWalker
from openmxu.rtl.common.stream_fifo import StreamFIFO
from openmxu.rtl.dispatch.commands import loads_weights, weight_command
from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH
from openmxu.rtl.matrix.systolic_data_setup import OperandFormat, operand_value
from openmxu.rtl.weights.memory_rows import MemoryRows

__all__ = ["WeightFetcher", "tile_layout", "weight_row_layout"]


def weight_row_layout(config: Config) -> data.ArrayLayout:
    """A row of a tile: S operands."""
    return data.ArrayLayout(signed(OPERAND_WIDTH), config.size)


def tile_layout(config: Config) -> data.StructLayout:
    """What is known of a tile of weight memory that has been asked for: ``slot`` is its place in the weight FIFO."""
    slot = {"slot": range(config.weight_fifo_tiles)} if loads_weights(config) else {}
    return data.StructLayout({"format": OperandFormat, **slot})


def loaded_tile_layout(config: Config) -> data.StructLayout:
    """The same of a tile of the unified buffer."""
    return data.StructLayout({"tile": tile_layout(config), "transposed": 1})


class WeightFetcher(wiring.Component):
    """Executes Read_Weights: requests one burst per tile while the weight FIFO has room; converts bytes to operands.

    Tiles of Load_Weights, whose rows the host writer reads, come beside those of weight memory: a tile has its slot in
    the weight FIFO from the moment in which it is asked for. Where rows of both wait, they go in turn, so that a row of
    the memory waits a cycle at most.

    Members
    -------
    commands
        Taken into a queue of ``weight_queue_depth`` as soon as they come. If ``wide``, the command's format does not
        matter: its first, third, … tile is uint8, the others are int8, without a zero point.
    memory
        The weight read port.
    rows
        Rows of the tiles, row 0 first, zero point subtracted; in cores without Load_Weights tile after tile.
    buffer_rows
        In cores with Load_Weights: its rows of the unified buffer, S for each.
    slot, row, transposed
        In cores with Load_Weights: the slot of the row's tile, one after the other in the order of the tiles; the row's
        number; whether the tile's rows are columns.
    tile_taken
        Set for one cycle when a tile leaves the weight FIFO, which makes room for another.
    flush
        While set, no tile is requested and queued commands are dropped; tiles already requested still arrive. Not while
        a Load_Weights is queued.
    busy
        Tiles are queued or in flight.
    settled
        No tile is in flight, and either nothing is queued or the next tile waits for room.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        loads = {
            "buffer_rows": In(stream.Signature(8 * config.size)),
            "slot": Out(range(config.weight_fifo_tiles)),
            "row": Out(range(config.size)),
            "transposed": Out(1),
        }
        super().__init__(
            {
                "commands": In(stream.Signature(weight_command(config))),
                "memory": Out(ReadPortSignature(config.weight_address_width, config.weight_data_bytes)),
                "rows": Out(stream.Signature(weight_row_layout(config), always_ready=True)),
                "tile_taken": In(1),
                "flush": In(1),
                "busy": Out(1),
                "settled": Out(1),
                **(loads if loads_weights(config) else {}),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        beat_bits = ceil_log2(config.weight_data_bytes)
        row_bits = ceil_log2(config.size)

        m.submodules.queue = queue = StreamFIFO(weight_command(config), config.weight_queue_depth)
        m.submodules.arrived = arrived = MemoryRows(row_bytes=config.size, beat_bytes=config.weight_data_bytes)
        # A tile is a run of rows in one format.
        m.submodules.places = places = RunWalker(row_bits + 1, len(arrived.places.p.lane), tile_layout(config))
        m.submodules.in_flight = in_flight = StreamFIFO(
            places.runs.p.shape(), config.weight_fifo_tiles, always_ready=True
        )
        connect(m, in_flight.output, places.runs)
        m.submodules.next = queued = RegisterSlice(weight_command(config), half_rate=True)
        connect(m, flipped(self.commands), queue.input)
        connect(m, queue.output, queued.input)
        connect(m, flipped(self.memory.data), arrived.beats)
        connect(m, places.places, arrived.places)

        # The active command is in registers; its tiles are counted down and their addresses counted up.
        format = Signal(OperandFormat, reset_less=True)
        is_wide = Signal(reset_less=True)
        address = Signal(config.weight_address_width, reset_less=True)
        tiles = Countdown(queued.output.p.tiles.shape(), "tiles")
        active = Signal()
        asked = Signal()
        # A request that has been made stays until it is taken, also under flush.
        committed = Signal()

        # A tile is requested when the weight FIFO has room for all of it. Requested tiles are in `in_flight`, which is
        # as deep as the weight FIFO and therefore has room as well.
        credits = CreditCounter(config.weight_fifo_tiles)
        request = self.memory.request
        from_buffer: Value = Const(0)
        if loads_weights(config):
            from_buffer, transposed = (Signal(name=name, reset_less=True) for name in ("from_buffer", "transposed"))
        is_taken = Signal()
        m.d.comb += [
            request.p.address.eq(Cat(Const(0, beat_bits), address[beat_bits:])),
            request.valid.eq(active & credits.has_credit & (~self.flush | committed) & ~from_buffer),
            # Under flush, an active command that has made no request ends in any case.
            is_taken.eq(credits.has_credit & (from_buffer | request.ready)),
            asked.eq(active & is_taken & (~self.flush | committed)),
            # The idle cycle between two commands costs nothing, because tiles take longer than that.
            queued.output.ready.eq(~active),
            in_flight.input.valid.eq(asked & ~from_buffer),
            in_flight.input.p.rows.eq(config.size),
            in_flight.input.p.context.format.eq(format),
        ]
        if config.tile_bytes >= config.weight_data_bytes:
            m.d.comb += request.p.beats.eq(config.tile_bytes // config.weight_data_bytes)
        else:
            m.d.comb += request.p.beats.eq(1)
        if config.size < config.weight_data_bytes:
            m.d.comb += in_flight.input.p.lane.eq(address[row_bits:beat_bits])

        m.d.sync += [
            *credits.step(asked, self.tile_taken),
            committed.eq(request.valid & ~request.ready),
        ]
        with m.If(~active):
            m.d.sync += [
                active.eq(queued.output.valid & ~self.flush),
                address.eq(queued.output.p.address),
                is_wide.eq(queued.output.p.wide),
                *tiles.start(queued.output.p.tiles),
            ]
            # Of wide weights, low bytes are unsigned and high bytes signed.
            with m.If(queued.output.p.wide):
                m.d.sync += [format.zero_point.eq(0), format.is_signed.eq(0)]
            with m.Else():
                m.d.sync += format.eq(queued.output.p.format)
            if loads_weights(config):
                m.d.sync += [
                    from_buffer.eq(queued.output.p.from_buffer),
                    transposed.eq(queued.output.p.transposed),
                ]
        with m.Elif(asked):
            m.d.sync += [
                address.eq(address + config.tile_bytes),
                format.is_signed.eq(format.is_signed ^ is_wide),
                *tiles.step(),
            ]
        with m.If(active & is_taken & (tiles.last | self.flush)):
            m.d.sync += active.eq(0)
        with m.If(self.flush & ~committed):
            m.d.sync += active.eq(0)

        waits = queue.output.valid | queued.output.valid
        is_coming = in_flight.output.valid | places.busy
        if loads_weights(config):
            slot = self._count_slots(m, asked)
            m.submodules.to_load = to_load = StreamFIFO(
                loaded_tile_layout(config), config.weight_fifo_tiles, always_ready=True
            )
            m.submodules.loads = loads = RunWalker(row_bits + 1, 0, loaded_tile_layout(config))
            m.d.comb += [
                in_flight.input.p.context.slot.eq(slot),
                to_load.input.valid.eq(asked & from_buffer),
                to_load.input.p.tile.format.eq(format),
                to_load.input.p.tile.slot.eq(slot),
                to_load.input.p.transposed.eq(transposed),
                loads.runs.valid.eq(to_load.output.valid),
                loads.runs.p.rows.eq(config.size),
                loads.runs.p.context.eq(to_load.output.payload),
                to_load.output.ready.eq(loads.runs.ready),
            ]
            is_coming = is_coming | to_load.output.valid | loads.busy
            self._merge(m, places.context, arrived.rows, loads)
        else:
            m.d.comb += [self.rows.valid.eq(arrived.rows.valid), arrived.rows.ready.eq(1)]
            for column in range(config.size):
                byte = arrived.rows.payload.word_select(column, 8)
                m.d.comb += self.rows.payload[column].eq(operand_value(byte, places.context.format))
        m.d.comb += [
            self.busy.eq(waits | active | is_coming),
            self.settled.eq(~is_coming & ((~waits & ~active) | ~credits.has_credit)),
        ]
        return m

    def _count_slots(self, m: Module, asked: Value) -> Value:
        """The slot of the next tile."""
        slot = Signal(range(self.config.weight_fifo_tiles))
        with m.If(asked):
            m.d.sync += slot.eq(Mux(slot == self.config.weight_fifo_tiles - 1, 0, slot + 1))
        return slot

    def _merge(self, m: Module, tile: data.View, arrived: stream.Interface, loads: RunWalker) -> None:
        """Take rows of the memory, which belong to ``tile``, and of the unified buffer, in turn where both wait."""
        m.submodules.loaded = loaded = StreamRegister(self.buffer_rows.p.shape())
        connect(m, flipped(self.buffer_rows), loaded.input)
        # In the cycle after a row of the memory: whether one of the unified buffer waits. A register, because beats of
        # the memory, which come from far away on the chip, wait for it.
        buffer_first = Signal()
        takes_memory, takes_buffer = Signal(), Signal()
        # Whether a row of the unified buffer is taken if there is one: all that the host writer, which is far away as
        # well, waits for.
        may_take_buffer = Signal(attrs={"keep": 1})
        memory_row, buffer_row = Signal(range(self.config.size)), Signal(range(self.config.size))
        m.d.comb += [
            arrived.ready.eq(~buffer_first),
            takes_memory.eq(arrived.valid & ~buffer_first),
            takes_buffer.eq(buffer_first | (loads.places.valid & loaded.output.valid & ~arrived.valid)),
            may_take_buffer.eq(buffer_first | (loads.places.valid & ~arrived.valid)),
            loaded.output.ready.eq(may_take_buffer),
            loads.places.ready.eq(takes_buffer),
            self.rows.valid.eq(arrived.valid | takes_buffer),
            self.slot.eq(Mux(takes_buffer, loads.context.tile.slot, tile.slot)),
            self.row.eq(Mux(takes_buffer, buffer_row, memory_row)),
            self.transposed.eq(takes_buffer & loads.context.transposed),
        ]
        # A row and a place that are not taken stay; where there is none, the next one comes in.
        m.d.sync += buffer_first.eq(takes_memory & loads.busy & (loaded.output.valid | loaded.input.valid))
        # Tiles have S rows, after which the counts begin again by themselves.
        with m.If(takes_memory):
            m.d.sync += memory_row.eq(memory_row + 1)
        with m.If(takes_buffer):
            m.d.sync += buffer_row.eq(buffer_row + 1)
        # Both operands are ready before it is known which one goes.
        for column in range(self.config.size):
            of_buffer, of_memory = (
                operand_value(bytes.word_select(column, 8), format)
                for bytes, format in (
                    (loaded.output.payload, loads.context.tile.format),
                    (arrived.payload, tile.format),
                )
            )
            m.d.comb += self.rows.payload[column].eq(Mux(takes_buffer, of_buffer, of_memory))
