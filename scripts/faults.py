"""Provoke every fault on the RTL in its AXI shell, and run random words as programs.

    python scripts/faults.py
    python scripts/faults.py --times 100 --resets 5000 --words 100000 --seed 1

Faults of instructions come at random places of random programs. Memories answer with errors, or never, and the watchdog
stops a program that takes too long. After each fault a random program must leave the same bytes as on the interpreter.

Resets: a random program is reset in a random cycle, and the next one must be right.

Random words: any 128 bits, or a known opcode with any fields. Each is a program; the interpreter must raise the same
fault at the same instruction, or leave the same bytes. Bytes outside the windows may not change.

Exit status 1 when a fault was not reported as it should be, or anything differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, Python finds only its own folder

from openmxu.arch.config import Config
from openmxu.arch.faults import CORE_FAULTS, FaultCode
from openmxu.arch.isa import FORMATS, WORD_BITS, Instruction, Register, format_named, register_format
from openmxu.device import DeviceFault
from openmxu.driver import DeviceBusError, MappedDevice, MemoryKind
from openmxu.sim.axi import Reply, SimulatedAxi
from openmxu.sim.interpreter import Interpreter
from tb.lockstep import Case, generate, outcome
from tb.lockstep.case import HALT
from tb.lockstep.programs.faulting import faulting_instructions

__all__ = ["Pair", "Row", "core_faults", "main", "random_words", "resets", "shell_faults"]

CONFIG = Config(
    size=4,
    activation_lanes=1,
    unified_buffer_rows=4096,
    unified_buffer_banks=1,
    accumulator_rows=36,
    parameter_sets=3,
    host_data_bytes=4,
    weight_data_bytes=8,
    host_address_width=24,
)
"""A small and irregular configuration, as in the tests of the simulated AXI shell."""

MEMORY_BYTES = 1 << 18
RING_BYTES = 1 << 12
SHORT_LIMIT = 5_000
"""A limit in cycles that no instruction of a random program reaches, but a large window does."""

GUARD = 0xA5


@dataclass
class Row:
    """A line of the table: how often a fault was provoked, reported by the right exception, and recovered from."""

    name: str
    provoked: int = 0
    reported: int = 0
    recovered: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether it was provoked at all, and reported and recovered from each time."""
        return 0 < self.provoked == self.reported == self.recovered


class StoppedError(Exception):
    """The cycles of a run are over, and its program is stopped."""


class StoppableAxi(SimulatedAxi):
    """A simulated AXI shell that stops after ``cycles`` cycles of waiting in all, if that is a number."""

    cycles: int | None = None

    def wait(self) -> bool:
        """Run until the interrupt is set, or the cycles are over."""
        if self.cycles is None:
            return super().wait()
        first = self.cycle
        is_set = self.run(self.cycles)
        self.cycles -= self.cycle - first
        if not self.cycles:
            raise StoppedError
        return is_set


class Pair:
    """The RTL and the interpreter, with equal memories and registers."""

    def __init__(self, seed: int, stall_probability: float = 0.2) -> None:
        self.transport = StoppableAxi(
            CONFIG,
            seed=seed,
            stall_probability=stall_probability,
            memory_latency=7,
            memory_bytes=MEMORY_BYTES,
        )
        self.rtl = MappedDevice(self.transport, ring_bytes=RING_BYTES, time_limit=SHORT_LIMIT)
        self.interpreter = Interpreter(CONFIG)

    def close(self) -> None:
        """Free the model."""
        self.rtl.close()

    def reset(self) -> None:
        """Reset the registers and clear the memories of both, because a fault of the shell leaves undefined contents in
        them."""
        self.rtl.scrub()
        self.rtl.reset()
        self.interpreter.scrub()

    def difference(self, case: Case) -> str | None:
        """Run a case on both; returns the difference, if any."""
        hosts = case.host_memory.copy(), case.host_memory.copy()
        for program in case.executions():
            outcomes = [
                outcome(device, program, host, case.weight_memory)
                for device, host in zip((self.rtl, self.interpreter), hosts, strict=True)
            ]
            if outcomes[0] != outcomes[1]:
                return f"RTL: {outcomes[0]}; interpreter: {outcomes[1]}"
            if not np.array_equal(*hosts):
                return "host memory"
        return None

    def recovers(self, seed: int) -> str | None:
        """Run a random program without faults on both; returns the difference, if any."""
        return self.difference(generate(CONFIG, seed, 20, fault_probability=0.0))


def core_faults(pair: Pair, times: int, rng: np.random.Generator) -> Iterator[Row]:
    """Every fault that the core detects in instructions, in the state that a random program leaves."""
    for code in CORE_FAULTS:
        row = Row(code.name)
        for _ in range(times):
            before = generate(CONFIG, int(rng.integers(1 << 40)), 12, fault_probability=0.0)
            checker = before.checker()
            *body, _ = before.instructions
            assert not any(checker.check(instruction) for instruction in body)
            faulting = faulting_instructions(code, checker, rng)
            pair.reset()
            case = before.with_instructions((*body, *faulting, HALT))
            (fault,) = case.faults()
            row.provoked += fault[1] is code
            difference = pair.difference(case)
            row.reported += difference is None
            recovery = pair.recovers(int(rng.integers(1 << 40)))
            row.recovered += recovery is None
            row.wrong += [text for text in (difference, recovery) if text]
        yield row


@dataclass(frozen=True)
class Trouble:
    """A way to provoke a fault of the shell.

    ``program`` faults at its instruction ``index`` when ``memory`` answers with ``reply`` for the bytes at ``address``.
    """

    name: str
    code: FaultCode
    index: int
    memory: MemoryKind | None = None
    address: int = 0
    reply: Reply = Reply.OKAY
    program: tuple[Instruction, ...] = ()


def _troubles() -> Iterator[Trouble]:
    read, write = format_named("Read_Host_Memory"), format_named("Write_Host_Memory")
    weights, multiply = format_named("Read_Weights"), format_named("MatrixMultiply")
    host = RING_BYTES
    size, tile = CONFIG.size, CONFIG.tile_bytes
    program = (
        read(rows=40),
        weights(tiles=1),
        multiply(rows=20, next_tile=1),
        read(rows=40, unified_buffer=100, host=1024),
        weights(tiles=2, weights=4 * tile),
        multiply(rows=20, next_tile=1),
        multiply(rows=20, next_tile=1, accumulate=1),
        write(rows=20, unified_buffer=100, host=2048),
        HALT,
    )
    places = {
        "host read": (3, MemoryKind.HOST, host + 1024 + 13 * size),
        "host write": (7, MemoryKind.HOST, host + 2048 + 19 * size),
        "weights": (4, MemoryKind.WEIGHT, 5 * tile),
        "program": (0, MemoryKind.HOST, 16),
    }
    for name, (index, memory, address) in places.items():
        for reply in (Reply.SLVERR, Reply.DECERR):
            yield Trouble(f"{name}, {reply.name}", FaultCode.BUS_ERROR, index, memory, address, reply, program)
        yield Trouble(f"{name}, no answer", FaultCode.TIME_OUT, index, memory, address, Reply.NEVER, program)
    window = _set(Register.POOLING_WINDOW, height=65535, width=65535)
    plane = _set(Register.POOLING_PLANE, height=1, width=1, output_width=1)
    long = (window, plane, format_named("Activate")(rows=1, pooling=1), HALT)
    yield Trouble("a window of 65535 x 65535", FaultCode.TIME_OUT, 2, program=long)


def _set(register: Register, **fields: int) -> Instruction:
    return format_named("Set_Configuration")(register=register, value=register_format(register).pack(**fields))


def shell_faults(pair: Pair, times: int, rng: np.random.Generator) -> Iterator[Row]:
    """Memories that answer with errors or never, and an instruction that takes too long."""
    memory = np.arange(1 << 14, dtype=np.uint32).astype(np.uint8)
    for trouble in _troubles():
        row = Row(f"{trouble.code.name}: {trouble.name}")
        for _ in range(times):
            pair.reset()
            if trouble.memory is not None:
                base = pair.transport.region(trouble.memory).base
                pair.transport.answer(trouble.memory, base + trouble.address, 1, trouble.reply)
            row.provoked += 1
            try:
                pair.rtl.execute(trouble.program, memory.copy(), memory)
            except DeviceFault as fault:
                right = (fault.code, fault.index) == (trouble.code, trouble.index)
                right = right and isinstance(fault, DeviceBusError) == (trouble.code is FaultCode.BUS_ERROR)
                row.reported += right
                row.wrong += [] if right else [str(fault)]
            else:
                row.wrong.append("no fault")
            if trouble.memory is not None:
                pair.transport.answer(trouble.memory, 0, 0, Reply.OKAY)
            pair.reset()
            recovery = pair.recovers(int(rng.integers(1 << 40)))
            row.recovered += recovery is None
            row.wrong += [recovery] if recovery else []
        yield row


def resets(pair: Pair, count: int, rng: np.random.Generator) -> Row:
    """Random programs that are reset in a random cycle; ``reported`` counts those that had not ended before."""
    row = Row("RESET in any cycle")
    while row.provoked < count:
        pair.reset()
        case = generate(CONFIG, int(rng.integers(1 << 40)), 30, fault_probability=0.2)
        pair.transport.cycles = int(rng.integers(1, 1500))
        try:
            for program in case.executions():
                outcome(pair.rtl, program, case.host_memory.copy(), case.weight_memory)
        except StoppedError:
            row.provoked += 1
            row.reported += 1
            pair.transport.cycles = None
            pair.rtl.reset()
            pair.reset()
            recovery = pair.recovers(int(rng.integers(1 << 40)))
            row.recovered += recovery is None
            row.wrong += [recovery] if recovery else []
        pair.transport.cycles = None
    return row


def _random_word(rng: np.random.Generator) -> Instruction:
    word = int.from_bytes(rng.bytes(WORD_BITS // 8), "little")
    kind = rng.integers(4)
    if kind == 0:
        return Instruction(word)
    format = FORMATS[int(rng.integers(len(FORMATS)))]
    word &= format.defined_mask & ~0xFF
    if kind == 3:
        # Small numbers are more often legal.
        word &= sum(min(item.mask, 0x1F << item.offset) for item in format.fields)
    return Instruction(word | format.opcode)


def random_words(pair: Pair, count: int, rng: np.random.Generator) -> Row:
    """Random words, each a program; ``reported`` counts those with the same outcome as on the interpreter,
    ``recovered`` those that change no other bytes of memory."""
    row = Row("random words")
    host = np.arange(1 << 12, dtype=np.uint32).astype(np.uint8)
    region = pair.transport.region(MemoryKind.HOST)
    used = RING_BYTES + host.size
    pair.reset()
    pair.transport.write_memory(MemoryKind.HOST, region.base + used, bytes([GUARD]) * (region.size - used))
    for number in range(count):
        words = (_random_word(rng), HALT)
        case = Case(CONFIG, words, host, host, number)
        row.provoked += 1
        difference = pair.difference(case)
        row.reported += difference is None
        rest = np.frombuffer(pair.transport.read_memory(MemoryKind.HOST, region.base + used, region.size - used), "u1")
        outside = bool((rest != GUARD).any())
        row.recovered += not outside
        if difference or outside:
            row.wrong.append(f"{words[0].word:#034x}: {difference or 'writes outside the window'}")
            pair.reset()
    return row


def main(arguments: list[str] | None = None) -> int:
    """Provoke the faults and report the results; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20, help="how often each fault is provoked; default: %(default)s")
    parser.add_argument("--resets", type=int, default=500, help="of running programs; default: %(default)s")
    parser.add_argument("--words", type=int, default=10_000, help="random words; default: %(default)s")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rng = np.random.default_rng(options.seed)
    pair = Pair(options.seed)
    rows: list[Row] = []
    print(f"{'fault':44}{'provoked':>10}{'reported':>10}{'recovered':>11}")

    def report(row: Row) -> None:
        print(f"{row.name:44}{row.provoked:10,}{row.reported:10,}{row.recovered:11,}", flush=True)
        rows.append(row)

    for faults in (core_faults, shell_faults):
        for row in faults(pair, options.times, rng):
            report(row)
    report(resets(pair, options.resets, rng))
    row = random_words(pair, options.words, rng)
    print(
        f"{row.provoked:,} random words: {row.provoked - row.reported:,} end otherwise than on the interpreter, "
        f"{row.provoked - row.recovered:,} write outside the windows, 0 hang"
    )
    rows.append(row)
    for row in rows:
        for text in row.wrong[:3]:
            print(f"{row.name}: {text}", file=sys.stderr)
    pair.close()
    return 0 if all(row.passed for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
