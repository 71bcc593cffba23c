"""Memory accesses of programs stay in the windows set by the driver, from the instruction to the burst."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.isa import Opcode
from openmxu.rtl.dispatch.check.instruction_check import InstructionCheck
from openmxu.rtl.dispatch.instruction_fields import by_opcode, field_of
from openmxu.rtl.host.burst_generator import BurstGenerator
from openmxu.rtl.weights.weight_fetcher import WeightFetcher
from tb.formal.proof import Proof

__all__ = ["BurstsOfTransfers", "LegalAccesses", "TilesOfWeights"]

CONFIG = Config(
    profile="full",
    size=2,
    activation_lanes=1,
    unified_buffer_rows=4,
    unified_buffer_banks=1,
    accumulator_rows=4,
    parameter_sets=1,
    weight_fifo_tiles=2,
    weight_queue_depth=1,
    host_data_bytes=4,
    weight_data_bytes=8,
    host_address_width=16,
    weight_address_width=16,
)
"""Rows and tiles are smaller than beats, and transfers have up to four rows, to cover all address arithmetic."""

_ALTERNATE = (Opcode.READ_HOST_MEMORY_ALTERNATE, Opcode.WRITE_HOST_MEMORY_ALTERNATE)
_TRANSFERS = (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY, *_ALTERNATE)


def _window(proof: Proof, m: Module) -> tuple[Value, Value]:
    """Base and limit of an arbitrary window within the address space; addresses beyond its end would wrap around."""
    base, limit = proof.any(m, "base", 16), proof.any(m, "limit", 17)
    proof.assume(m, limit <= 1 << 16)
    return base, limit


class LegalAccesses(Proof):
    """The instruction check, for instructions that access memory."""

    bound = 11
    reason = "one instruction, whose check takes up to 10 cycles; each check begins by loading its registers"

    def __init__(self) -> None:
        super().__init__(
            lambda: InstructionCheck(CONFIG), "InstructionCheck, host transfers, Read_Weights and Load_Weights"
        )

    def state(self, m: Module) -> None:
        unit = self.unit
        word, windows = unit.word, unit.windows
        is_ = by_opcode(unit.opcode_is, CONFIG)
        opcode = unit.new_word[:8]
        accesses = (*_TRANSFERS, Opcode.READ_WEIGHTS, Opcode.LOAD_WEIGHTS)
        self.assume(m, ~unit.start | Cat(opcode == code for code in accesses).any())
        # One instruction after reset; windows and configuration do not change during the check.
        first = Signal(init=1)
        m.d.sync += first.eq(0)
        self.assume(m, (unit.start == first) & (unit.load == first))
        for name in ("windows", "configuration"):
            before = Signal(Value.cast(getattr(unit, name)).shape(), name=f"{name}_before")
            m.d.sync += before.eq(Value.cast(getattr(unit, name)))
            self.assume(m, first | (before == Value.cast(getattr(unit, name))))

        legal = unit.done & unit.legal
        host, rows = field_of(word, Opcode.READ_HOST_MEMORY, "host"), field_of(word, Opcode.READ_HOST_MEMORY, "rows")
        stride = unit.configuration.host_stride.stride
        # The check of HOST_STRIDE allows no other strides.
        self.assume(m, stride[0] == 0)
        is_alternate = Cat(is_[code] for code in _ALTERNATE).any()
        is_transfer = Cat(is_[code] for code in _TRANSFERS).any()
        with m.If(legal & is_transfer):
            self.claim(
                m, "a legal transfer has rows, as many as fit", (rows != 0) & (rows <= CONFIG.unified_buffer_rows)
            )
            between = Mux(is_alternate, stride, CONFIG.size)
            end = host + (rows[:3] - 1) * between + CONFIG.size
            self.claim(
                m,
                "every byte of a legal transfer lies in the host window",
                (host >= windows.host_base) & (end <= windows.host_limit),
            )
        with m.If(legal & is_[Opcode.READ_WEIGHTS]):
            weights, tiles = (field_of(word, Opcode.READ_WEIGHTS, name) for name in ("weights", "tiles"))
            end = weights + (tiles << ceil_log2(CONFIG.tile_bytes))
            self.claim(
                m,
                "every byte of a legal Read_Weights lies in the weight window",
                (tiles != 0) & (weights >= windows.weight_base) & (end <= windows.weight_limit),
            )
        with m.If(legal & is_[Opcode.LOAD_WEIGHTS]):
            first = field_of(word, Opcode.LOAD_WEIGHTS, "unified_buffer")
            end = first + CONFIG.size
            self.claim(m, "the rows of a legal Load_Weights exist", end <= CONFIG.unified_buffer_rows)
            self.claim(
                m,
                "the scoreboard is told of these rows",
                (unit.ranges.unified_buffer == first) & (unit.ranges.unified_buffer_end == end),
            )
            self.claim(m, "it touches no byte of host memory", (unit.host == 0) & (unit.host_end == 0))
        self.reach(m, legal & is_[Opcode.LOAD_WEIGHTS])
        self.reach(m, legal & is_alternate & (rows == 4))
        self.reach(m, legal & is_[Opcode.READ_WEIGHTS])


class BurstsOfTransfers(Proof):
    """The burst generator, for legal transfers."""

    def __init__(self) -> None:
        super().__init__(lambda: BurstGenerator(CONFIG), "BurstGenerator")

    def state(self, m: Module) -> None:
        unit, command = self.unit, self.unit.commands.p
        size, beat = CONFIG.size, CONFIG.host_data_bytes
        base, limit = _window(self, m)
        end = command.host + (command.rows - 1) * Mux(command.alternate, command.stride, size) + size
        legal = (command.rows != 0) & (command.host >= base) & (end <= limit) & (command.host[0] == 0)
        self.assume(m, ~unit.commands.valid | legal)
        self.assume(m, ~unit.commands.valid | ~command.alternate | (command.stride[0] == 0))
        self.assume(m, self.kept(m, unit.commands))

        active, address, stride = (self.inside(name) for name in ("active", "address", "stride"))
        rows, bursts_left = self.inside("rows"), self.inside("bursts_left")
        rest = (bursts_left - 1) * stride + (rows << ceil_log2(size))
        with m.If(active):
            self.lemma(m, (rows != 0) & (bursts_left != 0) & ((rows == 1) | (bursts_left == 1)))
            self.lemma(m, (stride[0] == 0) | (bursts_left == 1))
            self.lemma(m, self.inside("bursts_last") == (bursts_left == 1))
            self.lemma(m, (address >= base) & (address + rest <= limit) & (address[0] == 0))
        request = unit.requests
        with m.If(request.valid):
            last = request.p.address + ((request.p.beats - 1) << ceil_log2(beat))
            self.claim(m, "a request is aligned, and not empty", (request.p.address[:2] == 0) & (request.p.beats != 0))
            self.claim(
                m,
                "every beat that is asked for has a byte of the window",
                (request.p.address + beat > base) & (last < limit),
            )
        self.claim(m, "requests stay until they are taken", self.kept(m, request))
        self.claim(m, "runs stay until they are taken", self.kept(m, unit.runs))
        self.reach(m, request.valid & (bursts_left == 3))
        self.reach(m, request.valid & (request.p.beats == 2))


class TilesOfWeights(Proof):
    """The weight fetcher, for legal Read_Weights and Load_Weights. The order of its queues is proved elsewhere."""

    def __init__(self) -> None:
        super().__init__(lambda: WeightFetcher(CONFIG), "WeightFetcher")

    def state(self, m: Module) -> None:
        unit = self.unit
        tile, beat = CONFIG.tile_bytes, CONFIG.weight_data_bytes
        base, limit = _window(self, m)
        command = unit.commands.p.shape()(self.inside("next.output__payload"))
        waits = self.inside("next.output__valid")
        end = command.address + (command.tiles << ceil_log2(tile))
        is_inside = (command.address >= base) & (end <= limit) & (command.address[:2] == 0)
        self.assume(m, ~waits | ((command.tiles != 0) & (command.from_buffer | is_inside)))
        self.assume(m, ~waits | ~command.from_buffer | (command.tiles == 1))
        self.assume(m, self.kept(m, unit.commands))
        self.assume(m, self.kept(m, unit.memory.data))

        active, left, address = self.inside("active"), self.inside("tiles_left"), self.inside("address")
        from_buffer = self.inside("from_buffer")
        with m.If(active):
            self.lemma(m, (left != 0) & (self.inside("tiles_last") == (left == 1)))
            is_inside = (address >= base) & (address + (left << ceil_log2(tile)) <= limit) & (address[:2] == 0)
            self.lemma(m, Mux(from_buffer, left == 1, is_inside))
        credits = self.inside("credits")
        # A tile that is taken had been asked for.
        self.assume(m, ~unit.tile_taken | (credits < CONFIG.weight_fifo_tiles))
        self.lemma(m, credits <= CONFIG.weight_fifo_tiles)
        self.lemma(m, self.inside("has_credit") == (credits != 0))
        asks = active & (credits != 0) & ~from_buffer
        self.lemma(m, ~self.inside("committed") | asks)
        request = unit.memory.request
        self._rows_in_turn(m)
        with m.If(request.valid):
            last = request.p.address + ((request.p.beats - 1) << ceil_log2(beat))
            self.claim(m, "a request is aligned, and not empty", (request.p.address[:3] == 0) & (request.p.beats != 0))
            self.claim(
                m,
                "every beat that is asked for has a byte of the window",
                (request.p.address + beat > base) & (last < limit),
            )
        self.claim(m, "requests stay until they are taken, also when flushed", self.kept(m, request))
        self.reach(m, request.valid & request.ready & (left == 2))

    def _rows_in_turn(self, m: Module) -> None:
        """Of rows that the memory and the unified buffer have ready, neither waits for two of the other's."""
        unit = self.unit
        of_memory, has_gone = self.inside("arrived.rows__valid"), self.inside("arrived.places__ready")
        of_buffer = self.inside("loaded.output__valid") & self.inside("loads.places__valid")
        has_come = self.inside("takes_buffer")
        self.claim(m, "a row goes to the weight FIFO whenever there is one", unit.rows.valid == (of_memory | of_buffer))
        self.claim(m, "one row goes in a cycle", ~(has_gone & has_come))
        memory_waited, buffer_waited = Signal(), Signal()
        m.d.sync += [memory_waited.eq(of_memory & ~has_gone), buffer_waited.eq(of_buffer & ~has_come)]
        self.lemma(m, ~(memory_waited & self.inside("buffer_first")))
        self.lemma(m, ~buffer_waited | self.inside("buffer_first"))
        self.claim(m, "a row of the memory waits a cycle at most", ~memory_waited | ~of_memory | has_gone)
        self.claim(m, "a row of the unified buffer waits a cycle at most", ~buffer_waited | ~of_buffer | has_come)
        self.reach(m, memory_waited & of_memory)
        self.reach(m, has_come & unit.transposed)
