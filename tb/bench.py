"""The bench around a unit: clock, reset, and agents that drive and sample its ports once per cycle."""

from __future__ import annotations

import json
import os
import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.handle import HierarchyObject, LogicArrayObject, LogicObject
from cocotb.triggers import ClockCycles, RisingEdge

from openmxu.arch.config import Config
from tb import CONFIG_VARIABLE

__all__ = ["CONFIG", "STALLS", "Agent", "Bench", "Sink", "Source", "random_generator"]

CONFIG = Config(**json.loads(os.environ[CONFIG_VARIABLE]))
"""Configuration of the units under test."""

STALLS = cocotb.parametrize(idle=[0.0, 0.6], backpressure=[0.0, 0.6])
"""Runs a test with every combination of the probabilities that a source and a sink pause in a cycle."""

Port = LogicObject | LogicArrayObject


class AbsentPort:
    """Stands for a port that the configuration does without."""

    @property
    def value(self) -> int:
        """Always 0."""
        return 0

    @value.setter
    def value(self, value: int) -> None:
        """There is nothing to drive."""


def random_generator() -> np.random.Generator:
    """A numpy generator seeded by cocotb's seed."""
    return np.random.default_rng(random.getrandbits(64))


class Agent:
    """Base class of everything that samples or drives ports in every cycle."""

    def sample(self) -> None:
        """Sample the ports at the end of the cycle."""

    def drive(self) -> None:
        """Set the ports for the next cycle."""


class Bench:
    """One unit of a rack, clocked cycle by cycle.

    Attributes
    ----------
    cycle
        The cycle that is sampled, counted from reset.
    next_cycle
        The cycle that is driven.
    """

    def __init__(self, dut: HierarchyObject, unit: str) -> None:
        self._dut = dut
        self._unit = unit
        self._edge = RisingEdge(dut.clk)
        self._agents: list[Agent] = []
        self.cycle = self.next_cycle = 0

    @classmethod
    async def start(cls, dut: HierarchyObject, unit: str) -> Bench:
        """Start the clock and reset the rack. The test must set the inputs before the next edge."""
        bench = cls(dut, unit)
        Clock(dut.clk, 2, unit="ns").start()
        await bench.reset()
        return bench

    async def reset(self) -> None:
        """Reset the rack; all agents must be idle."""
        self._dut.rst.value = 1
        for _ in range(2):
            await self._edge
        self._dut.rst.value = 0

    def port(self, name: str) -> Port:
        """Port ``name`` of the unit, members joined by two underscores."""
        return getattr(self._dut, f"{self._unit}__{name}")

    def optional_port(self, name: str) -> Port | AbsentPort:
        """Like :meth:`port`, and where the configuration does without that port, one that is 0 whatever is written."""
        found = self.find(name)
        return AbsentPort() if found is None else found

    def find(self, name: str) -> Port | None:
        """Like :meth:`port`, but ``None`` if there is none: streams that are always valid or ready lack that port."""
        return getattr(self._dut, f"{self._unit}__{name}", None)

    def add(self, agent: Agent) -> None:
        """Let ``agent`` take part from the current cycle on."""
        self._agents.append(agent)
        self.next_cycle = self.cycle
        agent.drive()

    def source(self, name: str, idle: float = 0.0) -> Source:
        """A source for the unit's input stream ``name``."""
        return Source(self, name, idle)

    def sink(
        self,
        name: str,
        backpressure: float = 0.0,
        *,
        on_transfer: Callable[[int], None] = lambda payload: None,
        may_take: Callable[[], bool] = lambda: True,
    ) -> Sink:
        """A sink for the unit's output stream ``name``."""
        return Sink(self, name, backpressure, on_transfer, may_take)

    async def step(self) -> None:
        """Advance by one clock cycle."""
        await self._edge
        # Values read now are those that the registers sampled; values written now are sampled at the next edge.
        for agent in self._agents:
            agent.sample()
        self.next_cycle = self.cycle + 1
        for agent in self._agents:
            agent.drive()
        self.cycle = self.next_cycle

    async def skip(self, cycles: int) -> None:
        """Advance by many clock cycles in which no agent takes part."""
        await ClockCycles(self._dut.clk, cycles)
        self.cycle = self.next_cycle = self.cycle + cycles

    async def steps(self, cycles: int) -> None:
        """Advance by several clock cycles."""
        for _ in range(cycles):
            await self.step()

    async def until(self, condition: Callable[[], bool], limit: int = 20_000) -> None:
        """Advance until ``condition`` holds; fails after ``limit`` cycles."""
        end = self.cycle + limit
        while not condition():
            assert self.cycle < end, f"{self._unit} did not finish in {limit} cycles"
            await self.step()

    async def play(self, inputs: Mapping[str, Sequence[int]], outputs: Iterable[str]) -> dict[str, list[int]]:
        """Drive ports with one value per cycle; returns the values of other ports at the end of each cycle."""
        drives = [(self.port(name), values) for name, values in inputs.items()]
        (cycles,) = {len(values) for values in inputs.values()}
        watched = [(self.port(name), []) for name in outputs]
        for cycle in range(cycles):
            for port, values in drives:
                # A port keeps its value, and a write takes longer than a comparison.
                if cycle == 0 or values[cycle] != values[cycle - 1]:
                    port.value = values[cycle]
            await self._edge
            for port, seen in watched:
                seen.append(int(port.value))
        self.cycle += cycles
        return dict(zip(outputs, (seen for _, seen in watched), strict=True))


class Source(Agent):
    """Drives a stream: holds each payload until it is transferred, and drives random payloads while not valid.

    Attributes
    ----------
    sent, times
        Payloads transferred, and the cycles in which they were.
    """

    def __init__(self, bench: Bench, name: str, idle: float) -> None:
        self._bench = bench
        self._valid, self._ready = bench.find(f"{name}__valid"), bench.find(f"{name}__ready")
        self._payload = bench.port(f"{name}__payload")
        self._width = len(self._payload)
        self._idle = idle
        self._queue: deque[int] = deque()
        self._offers = False
        self.sent: list[int] = []
        self.times: list[int] = []
        bench.add(self)

    def send(self, *payloads: int) -> None:
        """Queue payloads."""
        self._queue.extend(payloads)

    def clear(self) -> None:
        """Discard all queued payloads and withdraw the one that is offered."""
        self._queue.clear()
        self._offers = False
        self._valid.value = 0

    @property
    def is_empty(self) -> bool:
        """Whether all payloads have been transferred."""
        return not self._queue

    def sample(self) -> None:
        if self._offers and (self._ready is None or int(self._ready.value)):
            self.sent.append(self._queue.popleft())
            self.times.append(self._bench.cycle)
            self._offers = False

    def drive(self) -> None:
        if self._offers:
            return
        self._offers = bool(self._queue) and random.random() >= self._idle
        self._payload.value = self._queue[0] if self._offers else random.getrandbits(self._width)
        self._valid.value = int(self._offers)


class Sink(Agent):
    """Accepts payloads of a stream, and checks that valid and payload hold until the transfer.

    Attributes
    ----------
    received, times
        Payloads transferred, and the cycles in which they were.
    may_take
        Called in each cycle; while it returns false, nothing is accepted.
    """

    def __init__(
        self,
        bench: Bench,
        name: str,
        backpressure: float,
        on_transfer: Callable[[int], None],
        may_take: Callable[[], bool],
    ) -> None:
        self._bench = bench
        self._name = name
        self._valid, self._payload = bench.port(f"{name}__valid"), bench.port(f"{name}__payload")
        self._ready = bench.find(f"{name}__ready")
        self._backpressure = backpressure
        self._on_transfer = on_transfer
        self.may_take = may_take
        self._takes = self._ready is None
        self._held: int | None = None
        self.received: list[int] = []
        self.times: list[int] = []
        bench.add(self)

    def release(self) -> None:
        """Allow the payload that is offered to be withdrawn in the next cycle."""
        self._held = None

    def sample(self) -> None:
        payload = int(self._payload.value) if int(self._valid.value) else None
        if self._held is not None:
            assert payload is not None, f"{self._name}: valid was withdrawn in cycle {self._bench.cycle}"
            assert payload == self._held, f"{self._name}: the payload changed in cycle {self._bench.cycle}"
        if payload is not None and self._takes:
            self.received.append(payload)
            self.times.append(self._bench.cycle)
            self._held = None
            self._on_transfer(payload)
        else:
            self._held = payload

    def drive(self) -> None:
        if self._ready is not None:
            self._takes = random.random() >= self._backpressure and self.may_take()
            self._ready.value = int(self._takes)
