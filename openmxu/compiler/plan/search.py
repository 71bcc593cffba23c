"""The fastest of several programs for one network: the cycle model is the judge."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from openmxu.arch.config import Config
from openmxu.arch.isa import WORD_BYTES, Instruction
from openmxu.compiler.errors import CapacityError
from openmxu.compiler.ir.operations import Operation
from openmxu.compiler.plan.ramp import Ramp
from openmxu.compiler.plan.staging import fetch_cycles
from openmxu.compiler.target import Target

__all__ = ["fastest"]

_RAMPS, _LIMITS = 300_000, 100_000
"""Instructions of all the programs that are tried in each part of a search with an effort of 1: up to two minutes."""

_SHORT = 1000
"""Programs as long as the best one that may still be tried, where it is so short that all ways are tried twice."""

_STEPS = 300_000
"""Likewise of programs for the first steps of recurrent cells."""

_MANY = 20
"""Programs that may still be tried where a quarter of a resource is tried although half of it is slower."""

_LATENCIES = (4, 100)
"""Of the memories in cycles: a program should be fast with both."""

_EQUAL = 1.001
"""How much slower than the first program another one may be with one latency: the cycle model is no more exact."""

_LOSS = 1.01
"""How much slower than the best program so far another one may be with one latency, where it gains with the other."""

_HIDDEN = 4
"""Beats of reading instructions, while the host port is busy with others, to one that something waits for. A round
value: cycles of ``mnist`` and ``resnet20`` behind the AXI shell say from 1 to 7, by the length of the program."""

_MEMORIES = ("unified_buffer_rows", "accumulator_rows", "parameter_sets")
"""Memories of which a program may leave a part unused."""

_STEP_RESOURCES = ("host_data_bytes", "weight_fifo_tiles", *reversed(_MEMORIES))
"""What programs for first steps may have less of, in the order in which it is tried. A larger unified buffer comes
after other memories: with less of it blocks are small, however much room their sums have. Plans for a narrower host
port load fewer weights through it, and those for a shorter weight FIFO load them later."""

_HALVINGS = 4

_SUMS = 1024
"""Accumulator rows that every program may use."""

_FIRST_STEPS = 2
"""Steps of a recurrent cell in the programs that are tried in place of programs for whole sequences, at least: later
steps are alike, or every second one is."""

_SHORT_STEPS = 1000
"""Instructions of such programs that may have twice as many steps: queues and FIFOs fill up over several of them."""


class _Compiled(Protocol):
    """Anything with instructions."""

    @property
    def instructions(self) -> tuple[Instruction, ...]: ...


_Result = TypeVar("_Result", bound=_Compiled)
_Program = TypeVar("_Program", bound=_Compiled, covariant=True)


class _Compile(Protocol[_Program]):
    """Makes a program for memories as small as those of a configuration, that begins and ends in one way. Of recurrent
    cells it does the first ``steps`` steps, or all of them."""

    def __call__(self, limits: Config, ramp: Ramp, steps: int | None = None, /) -> _Program: ...


class _Search(Generic[_Result]):
    """Keeps the fastest of the programs that it is shown.

    More instructions must save the cycles that something waits for them: the model does not count these.
    """

    def __init__(self, first: _Result, config: Target) -> None:
        self.best = first
        self.cycles: Sequence[int] = ()
        """Of the best program with each latency; none as long as no other program may be tried."""
        self._config = config
        self._most: Sequence[int] = ()
        self._left = 0

    def allow(self, instructions: int) -> None:
        """Allow to try programs of so many instructions together."""
        self._left = instructions
        if self.attempts and not self._most:
            self._most = self.cycles = tuple(self._predicted(self.best))

    @property
    def attempts(self) -> int:
        """Other programs that may be tried, if they are as long as the best one."""
        return max(0, self._left // len(self.best.instructions))

    @property
    def may_go_on(self) -> bool:
        """Whether another program may be tried."""
        return self.attempts > 0

    def improve(self, other: _Result, cycles: Iterable[int] = ()) -> bool:
        """Whether a program, of so many ``cycles`` if they are known, is faster than the best one, which it is from now
        on."""
        self._left -= len(other.instructions)
        if other.instructions == self.best.instructions:  # about half of them, and predictions take longest
            return False
        needed: list[int] = []
        for own, most, best in zip(cycles or self._predicted(other), self._most, self.cycles, strict=True):
            if own > min(_EQUAL * most, _LOSS * best):
                return False
            needed.append(own)
        added = self._waiting(other, needed) - self._waiting(self.best, self.cycles)
        if sum(self.cycles) - sum(needed) <= len(_LATENCIES) * max(0, added):
            return False
        self.best, self.cycles = other, needed
        return True

    def _waiting(self, program: _Result, cycles: Sequence[int]) -> float:
        """Cycles of waiting for instructions, about: a program with few of them among many cycles has each one ready
        when it is needed."""
        beats = self._length(program) * -(-WORD_BYTES // self._config.host_data_bytes)
        return beats * beats * len(_LATENCIES) / (_HIDDEN * sum(cycles))

    def _predicted(self, program: _Result) -> Iterator[int]:
        """Cycles of a program with each latency."""
        return _cycles(program, self._config)

    def _length(self, program: _Result) -> int:
        """The number of its instructions."""
        return len(program.instructions)


class _FirstSteps(Generic[_Program]):
    """The first steps of a network's recurrent cells stand for all: further ones take what some more steps add.

    Parameters
    ----------
    compiled
        Makes a program for so many steps.
    first
        The number of first steps.
    count
        Of all steps.
    """

    def __init__(self, compiled: Callable[[int], _Program], first: int, count: int) -> None:
        self.first = compiled(first)
        self._compiled = compiled
        # Where two steps take turns, pairs of them are alike.
        self._counts = first, first // 2, count

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """Of the first steps alone."""
        return self.first.instructions

    @cached_property
    def more(self) -> _Program:
        """The program with some more steps."""
        first, more, _ = self._counts
        return self._compiled(first + more)

    def all_steps(self, own: int, longer: int) -> int:
        """What all steps take of something of which the first ones take so much, and these and some more so much."""
        first, more, count = self._counts
        return own + (count - first) * (longer - own) // more


class _StepSearch(_Search[_FirstSteps[_Result]]):
    """Compares programs for all steps of recurrent cells, none of which is made."""

    def _predicted(self, program: _FirstSteps[_Result]) -> Iterator[int]:
        return map(program.all_steps, _cycles(program.first, self._config), _cycles(program.more, self._config))

    def _length(self, program: _FirstSteps[_Result]) -> int:
        return program.all_steps(len(program.instructions), len(program.more.instructions))


def _cycles(program: _Compiled, config: Target) -> Iterator[int]:
    """Those of a program, with each latency."""
    from openmxu.sim.cycle_model import Predictor  # needs the RTL, which takes a while to load

    predictor = Predictor(program.instructions, config)
    rates = {"host_rate": config.host_rate, "weight_rate": config.weight_rate}
    for latency in _LATENCIES:
        yield predictor.predict(latency, **rates).cycles


def fastest(
    compiled: _Compile[_Result], operation: Operation, config: Target, effort: int, *, steps: int = 0
) -> _Result:
    """The fastest program of those tried.

    The ways to begin and to end it are changed one after the other, again and again as long as that helps. Then it may
    use a half of a memory, a quarter and so on: a core with more of it should not be slower than one with less. Where
    that helps, the search begins again as it would there.

    Programs of recurrent cells may be too long for that. How much of each memory they use, and for which width of the
    host port they are, is decided by their first steps, before the search begins.

    Parameters
    ----------
    compiled
        Makes the programs.
    operation
        The network's first operation.
    effort
        How many programs may be tried, relative to the usual number; with 0 it is the first one alone.
    steps
        Of the network's longest recurrent cell; 0 if there is none.
    """
    limits = dataclasses.replace(config, accumulator_rows=min(config.accumulator_rows, _enough_sums(config)))
    if effort and steps > _FIRST_STEPS:
        limits = _limits_of_steps(compiled, Ramp.of(operation, limits), config, limits, effort, steps)
    search, ramp = _with_other_ends(compiled, operation, config, limits, effort)
    if effort and (config.host_rate, config.weight_rate) != (None, None):
        search.allow(effort * _LIMITS)
        # The plan for memories without limits may still be the better one: rules are rough.
        plain = dataclasses.replace(limits, host_rate=None, weight_rate=None)
        again, found = _with_other_ends(compiled, operation, config, plain, effort)
        if search.may_go_on and search.improve(again.best, again.cycles):
            limits, ramp = plain, found
    while effort:
        search.allow(effort * _LIMITS)
        before, limits = limits, _with_less(compiled, search, ramp, limits)
        if limits == before:
            break
        again, found = _with_other_ends(compiled, operation, config, limits, effort)
        ramp = found if search.improve(again.best, again.cycles) else ramp
    return search.best


def _limits_of_steps(
    compiled: _Compile[_Result], ramp: Ramp, config: Target, limits: Config, effort: int, steps: int
) -> Config:
    """The limits with as much of each resource as recurrent cells need to be fastest."""

    first = _FIRST_STEPS

    def first_steps(limits: Config) -> _FirstSteps[_Result]:
        return _FirstSteps(lambda count: compiled(limits, ramp, count), first, steps)

    whole = first_steps(limits)
    while 4 * first <= steps and len(whole.instructions) <= _SHORT_STEPS:
        first *= 2
        whole = first_steps(limits)
    search = _StepSearch(whole, config)
    search.allow(effort * _STEPS)
    before: Config | None = None
    tried = {limits}
    while limits != before:
        # Less of one resource may pay off only with less of another.
        before, limits = limits, _with_less_for_steps(first_steps, search, limits, tried)
        if limits == before:
            limits = _with_less_of_two(first_steps, search, limits, tried)
    return limits


def _with_less_for_steps(
    first_steps: Callable[[Config], _FirstSteps[_Result]],
    search: _Search[_FirstSteps[_Result]],
    limits: Config,
    tried: set[Config],
) -> Config:
    """The limits with less of each resource where cells are faster with it; none that were ``tried`` before."""
    for resource in _STEP_RESOURCES:
        for less, result in _halved(first_steps, search, limits, resource, tried):
            if search.improve(result):
                limits = less
            elif search.attempts < _MANY and result.instructions != search.best.instructions:
                break
    return limits


def _with_less_of_two(
    first_steps: Callable[[Config], _FirstSteps[_Result]],
    search: _Search[_FirstSteps[_Result]],
    limits: Config,
    tried: set[Config],
) -> Config:
    """The limits with half of the accumulators and the best part of the parameter sets, where cells are faster with
    both: fewer sums at a time need fewer sets at a time."""
    try:
        half = limits.replace(accumulator_rows=limits.accumulator_rows >> 1)
    except ValueError:  # no core has so few
        return limits
    for less, result in _halved(first_steps, search, half, "parameter_sets", tried):
        if search.improve(result):
            limits = less
    return limits


def _enough_sums(config: Config) -> int:
    """Accumulator rows of which half hide the fetch of a tile many times over: with more of them bands begin and end
    later, and nothing comes sooner."""
    return max(_SUMS, 16 * max(config.size, fetch_cycles(config)))


def _with_other_ends(
    compiled: _Compile[_Result], operation: Operation, config: Target, limits: Config, effort: int
) -> tuple[_Search[_Result], Ramp]:
    """A search for the fastest way to begin and to end a program, and that way."""
    first = Ramp.of(operation, limits)
    search, ramp = _with_changes(compiled, operation, config, limits, effort, first)
    if search.attempts >= _SHORT:
        # To load parameters before the first sums may pay off with other changes alone, which come before it.
        other, found = _with_changes(
            compiled, operation, config, limits, effort, dataclasses.replace(first, parameters_first=True)
        )
        ramp = found if search.improve(other.best, other.cycles) else ramp
    return search, ramp


def _with_changes(
    compiled: _Compile[_Result], operation: Operation, config: Target, limits: Config, effort: int, ramp: Ramp
) -> tuple[_Search[_Result], Ramp]:
    """A search that changes one thing of a way after the other, and the way that it ends with."""
    search = _Search(compiled(limits, ramp), config)
    search.allow(effort * _RAMPS)
    tried, before = {ramp}, None
    while ramp != before:
        before = ramp
        for alternatives in ramp.others(operation, limits):
            base = ramp
            for changes in alternatives:
                other = dataclasses.replace(base, **changes)
                if search.may_go_on and other not in tried:
                    tried.add(other)
                    ramp = other if search.improve(compiled(limits, other)) else ramp
    return search, ramp


def _with_less(compiled: _Compile[_Result], search: _Search[_Result], ramp: Ramp, limits: Config) -> Config:
    """The limits with as much of each memory as the fastest program needs."""
    attempts = search.attempts
    for place, memory in enumerate(_MEMORIES):
        last = search.best.instructions
        programs = _halved(lambda less: compiled(less, ramp), search, limits, memory, set())
        # Each memory gets its share: with little of one, programs may be so long that nothing is left for the others.
        share = -(-attempts // (len(_MEMORIES) - place))
        attempts -= share
        search.allow(share * len(search.best.instructions))
        for less, result in itertools.islice(programs, min(_HALVINGS, share)):
            if result.instructions != last and search.improve(result):
                limits = less
            last = result.instructions
    return limits


def _halved(
    compiled: Callable[[Config], _Result],
    search: _Search[_Result],
    limits: Config,
    resource: str,
    tried: set[Config],
) -> Iterator[tuple[Config, _Result]]:
    """Programs for a half of a resource, a quarter and so on, with these limits, as long as they fit in and may be
    tried. Limits that were ``tried`` are left out, and are these as well from then on."""
    while search.may_go_on:
        try:
            limits = limits.replace(**{resource: getattr(limits, resource) >> 1})
            if limits in tried:
                continue
            tried.add(limits)
            result = compiled(limits)
        except (CapacityError, ValueError):  # nothing fits in, or no core has so little
            return
        yield limits, result
