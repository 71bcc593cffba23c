"""Cycles of fixed and random programs: measured on a device, and as recorded in the file beside this module.

    python -m tb.directed.cycle_counts --write

measures them again and records them. A difference is not necessarily an error, but it shows a change of the hardware's
timing that needs a review.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from openmxu.arch.config import Config
from openmxu.arch.events import Counter
from openmxu.arch.isa import Instruction, Pooling, Register, format_named, register_format
from openmxu.sim.interpreter import Interpreter
from openmxu.sim.verilated import VerilatedDevice
from tb.directed.checks.scrubs import early_scrubs
from tb.directed.directed_cases import DIRECTED
from tb.directed.instructions import set_register
from tb.directed.slot_chains import HOST_BYTES, long_ranges, one_of_a_queue
from tb.directed.timed_programs import (
    PLACES,
    accumulator_pairs,
    host_memory,
    layers,
    setup,
    unified_buffer_pairs,
    weight_memory,
)
from tb.directed.unrelated_programs import unrelated
from tb.lockstep import generate, outcome
from tb.lockstep.campaign import VERILATED, verilated_device
from tb.lockstep.case import HALT

__all__ = ["EXPECTED", "MEASUREMENTS", "expected", "name_of"]

EXPECTED = Path(__file__).with_suffix(".json")
"""For each configuration the counters of the layers, and for the smaller ones the cycles of the pairs, the counters of
random programs, and the cycles of windows of all sizes, of scrubs at all times, of unrelated instructions, of one
instruction that waits for another in a queue, and of long ranges."""


_RANDOM_SEEDS = range(900, 930)
_RANDOM_STEPS = 100

_FAR_LATENCY = 60

_FAR = ("product", "late tiles")
"""Layers that are also measured with memories of that latency."""


def name_of(config: Config) -> str:
    """Key of the configuration in the file."""
    return f"S{config.size}-{config.fingerprint}"


def expected(config: Config) -> dict[str, dict]:
    """The recorded values of a configuration, by the names of ``MEASUREMENTS``."""
    return json.loads(EXPECTED.read_text())[name_of(config)]


def _measure_layers(config: Config, options: Mapping[str, object]) -> dict[str, dict[str, int]]:
    """All counters of each of the layers, on a device with the given options.

    Raises
    ------
    AssertionError
        The results of a program differ from those of the interpreter.
    """
    with _Bench(config, options) as bench, _Bench(config, {**options, "memory_latency": _FAR_LATENCY}) as far:
        return {
            name: {counter.name.lower(): count for counter, count in device.run(program).items()}
            for device, names in ((bench, None), (far, _FAR))
            for name, program in _renamed(layers(config), names)
        }


def _renamed(
    programs: Iterator[tuple[str, list[Instruction]]], names: tuple[str, ...] | None
) -> Iterator[tuple[str, list[Instruction]]]:
    """All programs, or only the given ones, renamed for far memories."""
    for name, program in programs:
        if names is None:
            yield name, program
        elif name in names:
            yield f"{name}, far", program


def _measure_pairs(config: Config, options: Mapping[str, object]) -> dict[str, dict[str, list[int]]]:
    """Cycles of the pairs: for each memory and pair of instructions a list in the order of ``PLACES``."""
    with _Bench(config, options) as bench:
        return {
            "unified buffer": bench.cycles(setup(), unified_buffer_pairs(config)),
            "accumulators": bench.cycles(setup(), accumulator_pairs(config)),
        }


def _measure_random(config: Config, options: Mapping[str, object]) -> dict[str, list[int]]:
    """For each seed, all counters after a long random program, in the order of :class:`Counter`.

    Its memories stall as in the lockstep tests: always in the same cycles.
    """
    found = {}
    for seed in _RANDOM_SEEDS:
        case = generate(config, seed, _RANDOM_STEPS)
        with verilated_device(case, **options) as device:
            host, weights = case.host_memory.copy(), case.weight_memory.copy()
            for program in case.executions():
                outcome(device, program, host, weights)
            found[str(seed)] = [device.counters[counter] for counter in Counter]
    return found


def _measure_windows(config: Config, options: Mapping[str, object]) -> dict[str, list[int]]:
    """Cycles of an Activate whose window has a size of 1, 2, 4, …, by the name of the size."""
    with _Bench(config, options) as bench:
        return bench.cycles([set_register(Register.POOLING_PLANE, height=1, width=1, output_width=1), HALT], _windows())


def _windows() -> Iterator[tuple[str, list[Instruction]]]:
    activate = format_named("activate")(unified_buffer=1, rows=1, pooling=Pooling.MAX, from_unified_buffer=1)
    for name in ("height", "width"):
        for bit in range(register_format(Register.POOLING_WINDOW).field(name).width):
            sizes = {"height": 1, "width": 1} | {name: 1 << bit}
            yield name, [set_register(Register.POOLING_WINDOW, stride_y=1, stride_x=1, **sizes), activate, HALT]


def _measure_scrubs(config: Config, options: Mapping[str, object]) -> dict[str, list[int]]:
    """Cycles with a scrub that leaves the data of a first program to a second one, or not, as numbers in pairs.

    The first number of a pair is how many times in succession have the cycles that the second one gives.
    """
    found: dict[str, list[int]] = {"lost": [], "kept": []}
    for (kept, cycles), times in itertools.groupby(early_scrubs(config, options)):
        found["kept" if kept else "lost"] += [len(list(times)), cycles]
    return found


def _measure_unrelated(config: Config, options: Mapping[str, object]) -> dict[str, list[int]]:
    """Cycles in which a unit has an instruction that comes after a queue of another unit's, for each length of it."""
    found: dict[str, list[int]] = {}
    with _Bench(config, options) as bench:
        bench.run(setup())
        for name, unit, program in unrelated(config):
            found.setdefault(name, []).append(bench.run(program)[Counter[f"{unit.name}_BUSY"]])
    return found


def _measure_queues(config: Config, options: Mapping[str, object]) -> dict[str, list[int]]:
    """Cycles of the programs of :func:`~tb.directed.slot_chains.one_of_a_queue`, by their names."""
    return _cycles_of_slots(config, options, one_of_a_queue(config))


def _measure_long_ranges(config: Config, options: Mapping[str, object]) -> dict[str, list[int]]:
    """Cycles of the programs of :func:`~tb.directed.slot_chains.long_ranges`, by their names."""
    return _cycles_of_slots(config, options, long_ranges(config))


def _cycles_of_slots(
    config: Config, options: Mapping[str, object], programs: Iterator[tuple[str, list[Instruction]]]
) -> dict[str, list[int]]:
    with _Bench(config, options) as bench:
        bench.host = np.resize(bench.host, HOST_BYTES)
        return bench.cycles(setup(), programs)


class _Bench:
    """A device and an interpreter that run the same programs."""

    def __init__(self, config: Config, options: Mapping[str, object]) -> None:
        self.device = VerilatedDevice(config, **options)
        self.reference = Interpreter(config)
        self.host, self.weights = host_memory(config), weight_memory(config)

    def __enter__(self) -> _Bench:
        self.counters = self.device.counters
        return self

    def __exit__(self, *exception: object) -> None:
        self.device.close()

    def run(self, program: list[Instruction]) -> dict[Counter, int]:
        """Run a program and compare its results; returns the increments of the counters."""
        ours, theirs = self.host.copy(), self.host.copy()
        events = self.device.execute(program, ours, self.weights)
        assert events == self.reference.execute(program, theirs, self.weights)
        assert np.array_equal(ours, theirs), "host memory"
        left, expected = self.device.snapshot(), self.reference.snapshot()
        assert np.array_equal(left.unified_buffer, expected.unified_buffer), "unified buffer"
        assert np.array_equal(left.accumulators, expected.accumulators), "accumulators"
        before, self.counters = self.counters, self.device.counters
        return {counter: count - before[counter] for counter, count in self.counters.items()}

    def cycles(
        self, first: list[Instruction], programs: Iterator[tuple[str, list[Instruction]]]
    ) -> dict[str, list[int]]:
        """Run the first program; returns the cycles of the others, by their names."""
        self.run(first)
        found: dict[str, list[int]] = {}
        for name, program in programs:
            found.setdefault(name, []).append(self.run(program)[Counter.CYCLES])
        return found


MEASUREMENTS: dict[str, Callable[[Config, Mapping[str, object]], dict]] = {
    "layers": _measure_layers,
    "pairs": _measure_pairs,
    "random": _measure_random,
    "windows": _measure_windows,
    "scrubs": _measure_scrubs,
    "unrelated": _measure_unrelated,
    "queues": _measure_queues,
    "long ranges": _measure_long_ranges,
}
"""What is recorded of a configuration, by its name in the file; of the larger ones only the layers."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tb.directed.cycle_counts", description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"update {EXPECTED.name}")
    write = parser.parse_args().write
    measured = {name_of(config): _measure(config) for config in VERILATED}
    if write:
        EXPECTED.write_text(_text(measured))
    else:
        print(_text(measured), end="")
    return 0


def _measure(config: Config) -> dict[str, dict]:
    names = MEASUREMENTS if config in DIRECTED else ("layers",)
    return {name: MEASUREMENTS[name](config, {}) for name in names}


def _text(measured: dict) -> str:
    """JSON with one pair or one counter per line."""
    text = json.dumps({"places": list(PLACES), **measured}, indent=1)
    lines, open_list = [], False
    for line in text.splitlines():
        if open_list:
            lines[-1] += line.strip() + (" " if line.endswith(",") else "")
        else:
            lines.append(line)
        open_list = line.endswith("[") or (open_list and not line.strip().startswith("]"))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
