"""Weights of the lite profile: tiles of weight memory, fetched ahead of their use and kept until then."""

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config, ceil_log2
from openmxu.rtl.common.interfaces import ReadPortSignature
from openmxu.rtl.dispatch.commands import weight_command
from openmxu.rtl.fpga.multiplier import OPERAND_WIDTH
from openmxu.rtl.fpga.target import Target
from openmxu.rtl.host.row_unpacker import RowUnpacker
from openmxu.rtl.lite.array import element_operand
from openmxu.rtl.matrix.systolic_data_setup import OperandFormat, operand_value

__all__ = ["LiteWeights"]


class LiteWeights(wiring.Component):
    """Executes Read_Weights: asks for one tile after the other while there is room, and makes operands of its bytes,
    one in a cycle.

    One Read_Weights is outstanding at a time, so that one number tells what is queued: its tiles that have not been
    taken, wherever they are.

    Members
    -------
    commands
        Taken as soon as they come; not while ``queue_full``.
    memory
        The weight read port.
    flush
        While set, no tile is asked for, and all are forgotten once those asked for have come.
    has_tile, has_queued_tile, queue_full
        A tile has been taken since all were forgotten; one is queued; no Read_Weights may come.
    settled, empty
        No tile is on its way; nor is one anywhere before the array.
    ready
        A tile is there.
    pair, operands
        Two rows of the oldest tile, an even one and the next one, in the cycle after their number: operands as
        :func:`~openmxu.rtl.lite.array.element_operand` makes them.
    take
        That tile leaves; only while ``ready``.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "commands": In(stream.Signature(weight_command(config))),
                "memory": Out(ReadPortSignature(config.weight_address_width, config.weight_data_bytes)),
                "flush": In(1),
                "has_tile": Out(1),
                "has_queued_tile": Out(1),
                "queue_full": Out(1),
                "settled": Out(1),
                "empty": Out(1),
                "ready": Out(1),
                "pair": In(range(config.size // 2)),
                "operands": Out(data.ArrayLayout(data.ArrayLayout(OPERAND_WIDTH, config.size), 2)),
                "take": In(1),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        row_bits, beat_bits = ceil_log2(config.size), ceil_log2(config.weight_data_bytes)
        tile_bits = ceil_log2(config.tile_bytes)
        m.submodules.unpacker = unpacker = RowUnpacker(row_bytes=config.size, beat_bytes=config.weight_data_bytes)
        connect(m, flipped(self.memory.data), unpacker.beats)

        # As many tiles as fit into weight memory: windows allow no more.
        untaken = Signal(max(1, min(24, config.weight_address_width + 1 - tile_bits)))
        address = Signal(config.weight_address_width, reset_less=True)
        format = Signal(OperandFormat, reset_less=True)
        whole = Signal(range(config.weight_fifo_tiles + 1))  # tiles that are there
        row = Signal(range(config.size))  # of the tile that comes
        waits = Signal()
        request = self.memory.request
        m.d.comb += [
            self.has_queued_tile.eq(untaken != 0),
            self.queue_full.eq(self.has_queued_tile),
            self.commands.ready.eq(1),
            self.ready.eq(whole != 0),
            waits.eq((whole == config.weight_fifo_tiles) | (whole == untaken)),
            request.p.address.eq(Cat(Const(0, beat_bits), address[beat_bits:])),
            request.p.beats.eq(max(1, config.tile_bytes // config.weight_data_bytes)),
            unpacker.places.p.last.eq(row == config.size - 1),
        ]
        if config.size < config.weight_data_bytes:
            m.d.comb += unpacker.places.p.lane.eq(address[row_bits:beat_bits] + row)

        comes, ends_row, ends_tile = Signal(), Signal(), Signal()
        forgets = Signal()
        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.comb += forgets.eq(self.flush)
                with m.If(~waits & ~self.flush):
                    m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += request.valid.eq(1)
                with m.If(request.ready):
                    m.next = "TAKE"
            with m.State("TAKE"):
                m.d.comb += [
                    unpacker.places.valid.eq(1),
                    comes.eq(unpacker.rows.valid),
                    unpacker.rows.ready.eq(ends_row),
                    ends_tile.eq(unpacker.places.ready & unpacker.places.p.last),
                ]
                with m.If(unpacker.places.ready):
                    m.d.sync += row.eq(row + 1)
                with m.If(ends_tile):
                    m.next = "IDLE"
        m.d.comb += [
            self.settled.eq(fsm.ongoing("IDLE") & waits),
            self.empty.eq(fsm.ongoing("IDLE") & ~self.has_queued_tile),
        ]
        with m.If(self.commands.valid):
            m.d.sync += [address.eq(self.commands.p.address), format.eq(self.commands.p.format)]
        with m.Elif(ends_tile):
            m.d.sync += address.eq(address + config.tile_bytes)

        m.d.sync += whole.eq(whole + ends_tile - self.take)
        with m.If(self.commands.valid):
            m.d.sync += untaken.eq(self.commands.p.tiles)
        with m.If(self.take):
            m.d.sync += [untaken.eq(untaken - 1), self.has_tile.eq(1)]
        with m.If(forgets):
            m.d.sync += [untaken.eq(0), whole.eq(0), self.has_tile.eq(0)]

        column = self._keep(m, comes, unpacker.rows.payload, format, Target.of(platform), forgets)
        m.d.comb += ends_row.eq(column == config.size - 1)
        return m

    def _keep(self, m: Module, comes: Value, row: Value, format: data.View, target: Target, forgets: Value) -> Signal:
        """Write the operands of a row, one after the other, and read tiles; returns the column that is written."""
        size = self.config.size
        tiles = 1 << ceil_log2(self.config.weight_fifo_tiles)
        # Of few rows, but wide: a memory of blocks, on which synthesis would spend logic.
        m.submodules.memory = memory = Memory(
            shape=2 * size * OPERAND_WIDTH, depth=tiles * size // 2, init=[], attrs={"ram_style": "block"}
        )
        write, read = memory.write_port(granularity=OPERAND_WIDTH), memory.read_port()
        column = Signal(range(size))
        odd = Signal()
        pair = Signal(range(tiles * size // 2))
        first = Signal(range(tiles))  # the oldest tile
        operand = element_operand(operand_value(row.word_select(column, 8), format)[:OPERAND_WIDTH].as_signed(), target)
        m.d.comb += [
            write.addr.eq(pair),
            write.data.eq(operand.as_unsigned()[:OPERAND_WIDTH].replicate(2 * size)),
            write.en.eq(Cat(comes & (Cat(column, odd) == place) for place in range(2 * size))),
            read.en.eq(1),
            read.addr.eq((first << ceil_log2(size // 2)) + self.pair),
            Value.cast(self.operands).eq(read.data),
        ]
        with m.If(comes):
            m.d.sync += Cat(column, odd, pair).eq(Cat(column, odd, pair) + 1)
        with m.If(self.take):
            m.d.sync += first.eq(first + 1)
        with m.If(forgets):
            m.d.sync += [pair.eq(0), first.eq(0)]
        return column
