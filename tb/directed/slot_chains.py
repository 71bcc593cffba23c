"""Programs in which an instruction in every slot waits for one in every slot of another unit, or for several."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.arch.isa import Instruction, Unit, format_named
from tb.directed.instructions import load_tile, synchronize
from tb.lockstep.case import HALT

__all__ = ["HOST_BYTES", "chains", "long_ranges", "one_of_a_queue"]

HOST_BYTES = 1 << 12
"""Bytes of host memory that the programs need."""

_LONGEST = 8
"""Rows of the older instructions at the most; the newer ones have one row, to end before the next one may start."""

_COMPARED = 4
"""Instructions of a unit that a new one is compared with in a cycle, at the most."""

_LEAST_BIT = 2
"""Lowest bit of a distance that leaves banks the same."""

Make = Callable[[int, int], Instruction]
"""Takes the first row and the number of rows of an access to the unified buffer."""


@dataclass
class _Slots:
    """The slots that the next instructions of each unit get, after power-on and all programs so far."""

    depth: int
    next: dict[Unit, int]

    def use(self, unit: Unit, count: int = 1) -> None:
        self.next[unit] = (self.next[unit] + count) % self.depth


@dataclass(frozen=True)
class _Accesses:
    """The accesses of a configuration, which conflict nowhere but in the rows, or bytes, that they are made for."""

    config: Config

    @property
    def rows(self) -> int:
        """Rows of an older instruction."""
        config = self.config
        return min(
            _LONGEST, config.unified_buffer_rows // 2 // config.command_queue_depth, config.accumulator_rows // 2
        )

    @property
    def longest(self) -> int:
        """Rows of a long range, which leaves room for others in the same half of a memory; a multiple of four."""
        config = self.config
        return min(config.unified_buffer_rows // 2 - 1, config.accumulator_rows - 1) // 4 * 4

    def free(self, rows: int) -> int:
        """The last rows of the unified buffer; those of the chain are in its first half."""
        return self.config.unified_buffer_rows - rows

    def place(self, index: int) -> int:
        """The rows of one older instruction."""
        return index * self.rows

    def read_host(self, row: int, rows: int) -> Instruction:
        return format_named("read_host_memory")(unified_buffer=row, rows=rows, host=0)

    def write_host(self, row: int, rows: int) -> Instruction:
        return format_named("write_host_memory")(unified_buffer=row, rows=rows, host=1 << 11)

    def multiply(self, row: int, rows: int) -> Instruction:
        return format_named("matrixmultiply")(unified_buffer=row, rows=rows)

    def activate(self, row: int, rows: int) -> Instruction:
        """From accumulators that :meth:`multiply` does not write."""
        return format_named("activate")(unified_buffer=row, source=self.config.accumulator_rows - rows, rows=rows)

    def activate_rows(self, row: int, rows: int) -> Instruction:
        return format_named("activate")(unified_buffer=self.free(rows), source=row, rows=rows, from_unified_buffer=1)

    def read_bytes(self, row: int, rows: int) -> Instruction:
        return format_named("read_host_memory")(unified_buffer=row, rows=rows, host=row * self.config.size)

    def write_bytes(self, row: int, rows: int) -> Instruction:
        return format_named("write_host_memory")(unified_buffer=row, rows=rows, host=row * self.config.size)

    def read_elsewhere(self, row: int, rows: int) -> Instruction:
        """From the bytes of :meth:`write_bytes`, to other rows."""
        return format_named("read_host_memory")(unified_buffer=self.free(rows), rows=rows, host=row * self.config.size)

    def write_elsewhere(self, row: int, rows: int) -> Instruction:
        """To the bytes of :meth:`read_bytes`, from other rows."""
        return format_named("write_host_memory")(unified_buffer=self.free(rows), rows=rows, host=row * self.config.size)

    def accumulate(self, row: int, rows: int) -> Instruction:
        return format_named("matrixmultiply")(unified_buffer=0, rows=rows, accumulator=row)

    def activate_sums(self, row: int, rows: int) -> Instruction:
        return format_named("activate")(unified_buffer=self.free(rows), source=row, rows=rows)

    def delays(self, unit: Unit) -> Instruction:
        """An instruction of another unit that those of this one wait for."""
        return self._delays_activation() if unit is Unit.ACTIVATION else self._delays_transfers()

    def _delays_transfers(self) -> Instruction:
        """Takes long, and writes the first half of the unified buffer, so that transfers and products wait for it."""
        half = self.config.unified_buffer_rows // 2
        return format_named("activate")(source=half, rows=half, from_unified_buffer=1)

    def _delays_activation(self) -> Instruction:
        """Takes long, writes accumulators and reads the last rows of the unified buffer: activations wait for it."""
        rows = min(self.config.accumulator_rows, self.config.unified_buffer_rows // 2)
        first = self.config.unified_buffer_rows - 2 * rows
        return format_named("matrixmultiply")(unified_buffer=first, rows=rows, wide_input=1)

    def pairs(self) -> list[tuple[tuple[Unit, Make], tuple[Unit, Make]]]:
        """An older and a newer access for every pair of units of which one may wait for the other."""
        read, write = (Unit.HOST_READ, self.read_host), (Unit.HOST_WRITE, self.write_host)
        multiply = (Unit.MATRIX, self.multiply)
        activate, activate_rows = (Unit.ACTIVATION, self.activate), (Unit.ACTIVATION, self.activate_rows)
        return [
            *((older, read) for older in (write, multiply, activate, activate_rows)),
            *((older, write) for older in (read, activate)),
            *((older, multiply) for older in (read, activate)),
            *((older, activate) for older in (write, multiply)),
            (read, activate_rows),
            ((Unit.HOST_READ, self.read_bytes), (Unit.HOST_WRITE, self.write_elsewhere)),
            ((Unit.HOST_WRITE, self.write_bytes), (Unit.HOST_READ, self.read_elsewhere)),
            ((Unit.MATRIX, self.accumulate), (Unit.ACTIVATION, self.activate_sums)),
            ((Unit.ACTIVATION, self.activate_sums), (Unit.MATRIX, self.accumulate)),
        ]


def chains(config: Config) -> Iterator[tuple[str, list[Instruction]]]:
    """Programs to run one after the other from power-on on, each with the name of its group, or ``""``.

    Programs of a group differ only in the slots that their instructions get, so that they must take the same cycles.
    """
    accesses = _Accesses(config)
    slots = _Slots(config.command_queue_depth, dict.fromkeys(Unit, 0))
    for older, newer in accesses.pairs():
        name = f"{older[1].__name__} before {newer[1].__name__}"
        for difference in range(slots.depth):
            yield "", _moves(accesses, slots, {older: 0, newer: difference})
            yield name, _chain(accesses, slots, older, newer)
    for older, newer in {(older[0], newer[0]): (older, newer) for older, newer in accesses.pairs()}.values():
        for count, first in itertools.product((1, slots.depth), range(slots.depth)):
            yield "", _moves(accesses, slots, {older: first, newer: 0})
            name = f"{count} {older[1].__name__} before each {newer[1].__name__}"
            yield name, _queues(accesses, slots, older, newer, count)
    activation = (Unit.ACTIVATION, accesses.activate)
    for distance in range(1, slots.depth):
        for first in range(slots.depth):
            yield "", _moves(accesses, slots, {activation: first})
            yield f"activations {distance} apart", _activations(accesses, slots, distance)


def _chain(accesses: _Accesses, slots: _Slots, older: tuple[Unit, Make], newer: tuple[Unit, Make]) -> list[Instruction]:
    """As many pairs as there are slots; the newer instruction of each waits for the older one."""
    places = [accesses.place(index) for index in range(slots.depth)]
    program = _prelude(accesses, slots)
    program.append(_delay(accesses, slots, older[0]))
    for (unit, make), rows in ((older, accesses.rows), (newer, 1)):
        program += [make(place, rows) for place in places]
        slots.use(unit, len(places))
    return [*program, synchronize(), HALT]


def _queues(
    accesses: _Accesses, slots: _Slots, older: tuple[Unit, Make], newer: tuple[Unit, Make], count: int
) -> list[Instruction]:
    """For each slot an instruction that waits for ``count`` older ones, which do not start before it is there."""
    oldest = slots.next[older[0]]
    program = _prelude(accesses, slots)
    for slot in range(slots.depth):
        program += _moves_to(slots, {older: (oldest + count * slot) % slots.depth, newer: slot})
        program.append(_delay(accesses, slots, older[0]))
        for (unit, make), copies, rows in ((older, count, accesses.rows // 2), (newer, 1, 1)):
            program += [make(0, rows)] * copies
            slots.use(unit, copies)
        program.append(synchronize())
    return [*program, HALT]


def long_ranges(config: Config) -> Iterator[tuple[str, list[Instruction]]]:
    """A long range and a row in it, the row as far before the range's end as each bit of an address alone can tell.

    The older instruction is any of the youngest of its unit, since several are compared at a time. Programs of the same
    name must take the same cycles, in any slots.
    """
    accesses = _Accesses(config)
    longest = accesses.longest
    kinds = (("in long", longest, 1), ("around", 1, longest))
    for (older, newer), younger, (name, older_rows, newer_rows) in itertools.product(
        accesses.pairs(), range(min(_COMPARED, config.command_queue_depth)), kinds
    ):
        (unit, make_older), (_, make_newer) = older, newer
        for bit in range(_LEAST_BIT, longest.bit_length()):
            row = longest - (1 << bit)
            yield (
                f"{make_newer.__name__} {name} {make_older.__name__}, {younger} younger",
                [
                    *load_tile(config),
                    accesses.delays(unit),
                    make_older(row if older_rows == 1 else 0, older_rows),
                    *younger * [make_older(longest, 1)],
                    make_newer(row if newer_rows == 1 else 0, newer_rows),
                    synchronize(),
                    HALT,
                ],
            )


def one_of_a_queue(config: Config) -> Iterator[tuple[str, list[Instruction]]]:
    """An instruction that waits for one of a full queue, for each place in the queue."""
    accesses = _Accesses(config)
    places = [accesses.place(index) for index in range(config.command_queue_depth)]
    for (unit, make_older), (_, make_newer) in accesses.pairs():
        queue = [make_older(place, accesses.rows) for place in places]
        for place in places:
            program = [*load_tile(config), accesses.delays(unit), *queue, make_newer(place, 1), synchronize(), HALT]
            yield f"{make_newer.__name__} after one {make_older.__name__}", program


def _activations(accesses: _Accesses, slots: _Slots, distance: int) -> list[Instruction]:
    """A queue of activations of one row each, which reads what an older one writes."""
    activate = functools.partial(format_named("activate"), rows=1, from_unified_buffer=1)
    last = accesses.config.unified_buffer_rows - 1
    program = _prelude(accesses, slots)
    program.append(_delay(accesses, slots, Unit.ACTIVATION))
    for index in range(slots.depth):
        source = last - index + distance if index >= distance else 0
        program.append(activate(unified_buffer=last - index, source=source))
    slots.use(Unit.ACTIVATION, slots.depth)
    return [*program, synchronize(), HALT]


def _delay(accesses: _Accesses, slots: _Slots, unit: Unit) -> Instruction:
    """Holds the instructions of a unit back until all those that may wait for them are there."""
    slots.use(Unit.MATRIX if unit is Unit.ACTIVATION else Unit.ACTIVATION)
    return accesses.delays(unit)


def _moves(accesses: _Accesses, slots: _Slots, wanted: dict[tuple[Unit, Make], int]) -> list[Instruction]:
    """A program after which the next instruction of each unit gets the wanted slot."""
    return [*_prelude(accesses, slots), *_moves_to(slots, wanted), HALT]


def _moves_to(slots: _Slots, wanted: dict[tuple[Unit, Make], int]) -> list[Instruction]:
    """Instructions after which the next one of each unit gets the wanted slot."""
    moves = []
    for (unit, make), slot in wanted.items():
        used = (slot - slots.next[unit]) % slots.depth
        moves += itertools.repeat(make(0, 1), used)
        slots.use(unit, used)
    return [*moves, synchronize()]


def _prelude(accesses: _Accesses, slots: _Slots) -> list[Instruction]:
    slots.use(Unit.MATRIX)
    return load_tile(accesses.config)
