"""A device in cocotb: the core between bus models, with the same interface as every other device."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

import numpy as np
from cocotb.handle import HierarchyObject
from cocotb.task import resume
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.events import Command, CoreStatus, Counter, Event, EventKind, Management
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction, Opcode
from openmxu.device import Device, DeviceFault, DeviceHang
from openmxu.disassembler import format_instruction
from openmxu.rtl.common.interfaces import EventLayout, ManagementRequest
from openmxu.sim.interpreter import check_memory, check_program
from tb.bench import CONFIG, Bench
from tb.memories import ReadMemory, WriteMemory
from tb.models.payloads import pack, unpack

__all__ = ["CocotbDevice"]

STATUS_FAULTED = 0b10
"""Value of the STATUS register when a fault has stopped the core and all units are idle."""

_PATIENCE = 100_000
"""Cycles after which a program that has not ended is considered hung."""


class CocotbDevice(Device):
    """The core with stream sources and sinks and memories around it.

    The methods of :class:`~openmxu.device.Device` block, so call them in a function that ``cocotb.task.bridge`` has
    wrapped.

    Parameters
    ----------
    bench
        A bench that has just been started.
    stall
        Probability that a stream pauses in a cycle, on the side of the bus models; memories answer late with the same
        probability.

    Attributes
    ----------
    bench
        The bench, for its cycle count.
    """

    def __init__(self, bench: Bench, stall: float) -> None:
        self.config: Config = CONFIG
        self.bench = bench
        nothing = np.zeros(0, np.uint8)
        host = (CONFIG.host_address_width, CONFIG.host_data_bytes, stall)
        weights = (CONFIG.weight_address_width, CONFIG.weight_data_bytes, stall)
        self._host_read = ReadMemory(bench, "host_read", nothing, *host)
        self._host_write = WriteMemory(bench, "host_write", nothing, *host)
        self._weights = ReadMemory(bench, "weights", nothing, *weights)
        self._instructions = bench.source("instructions", stall)
        self._management = bench.source("management", stall)
        self._responses = bench.sink("management_response", stall)
        self._events: list[Event] = []
        bench.sink("events", stall, on_transfer=self._on_event)

    @classmethod
    async def start(cls, dut: HierarchyObject, stall: float) -> CocotbDevice:
        """Reset the core of a rack and connect it to bus models."""
        return cls(await Bench.start(dut, "core"), stall)

    @resume
    async def _run(
        self, instructions: tuple[Instruction, ...], host_memory: NDArray[np.uint8], weight_memory: NDArray[np.uint8]
    ) -> list[Event]:
        self._host_read.memory = self._host_write.memory = host_memory
        self._weights.memory = weight_memory
        self._write(Management.HOST_BASE, 0)
        self._write(Management.HOST_LIMIT, host_memory.size)
        self._write(Management.WEIGHT_BASE, 0)
        self._write(Management.WEIGHT_LIMIT, weight_memory.size)
        await self.bench.until(lambda: self._management.is_empty)
        self._events.clear()
        halts = sum(instruction.word & 0xFF == Opcode.HALT for instruction in instructions)
        self._instructions.send(*(instruction.word for instruction in instructions))
        end = self.bench.cycle + _PATIENCE
        while True:
            kinds = [event.kind for event in self._events]
            if EventKind.FAULT in kinds:
                await self._recover()
                break
            if kinds.count(EventKind.HALT) == halts:
                break
            if self.bench.cycle > end:
                raise DeviceHang(f"no end after {_PATIENCE} cycles; status {await self._read(Management.STATUS):#x}")
            await self.bench.step()
        assert self._host_read.is_idle, "host memory was read and the data not taken"
        assert self._host_write.is_idle, "host memory was written and the answer not taken"
        assert self._weights.is_idle, "weights were read and not taken"
        return list(self._events)

    async def _recover(self) -> None:
        """After a fault the core drops the remaining instructions; CLEAR_FAULT lets it start again."""
        await self.bench.until(lambda: self._instructions.is_empty)
        assert await self._read(Management.STATUS) == STATUS_FAULTED, "after a fault, STATUS must show FAULTED only"
        self._write(Management.COMMAND, 1 << Command.CLEAR_FAULT)
        await self.bench.until(lambda: self._management.is_empty)

    def execute(
        self,
        program: Iterable[Instruction],
        host_memory: NDArray[np.uint8],
        weight_memory: NDArray[np.uint8],
    ) -> list[Event]:
        """Run ``program``; see :meth:`openmxu.device.Device.execute`. A fault carries its ``events``."""
        instructions = check_program(program)
        check_memory("host_memory", host_memory, writeable=True)
        check_memory("weight_memory", weight_memory)
        events = self._run(instructions, host_memory, weight_memory)
        if events[-1].kind is EventKind.FAULT:
            fault = self._fault(instructions, events)
            fault.events = events
            raise fault
        return events

    @staticmethod
    def _fault(instructions: tuple[Instruction, ...], events: list[Event]) -> DeviceFault:
        programs = deque(instructions)
        for _ in range(sum(event.kind is EventKind.HALT for event in events)):
            while programs.popleft().word & 0xFF != Opcode.HALT:
                pass
        event = events[-1]
        instruction = programs[event.index]
        return DeviceFault(event.fault, event.index, instruction, format_instruction(instruction))

    @property
    def counters(self) -> Mapping[Counter, int]:
        """All counters since they were last cleared."""
        return self._read_counters()

    @resume
    async def _read_counters(self) -> dict[Counter, int]:
        return {counter: await self._read(Management.COUNTERS + counter) for counter in Counter}

    @resume
    async def clear_counters(self) -> None:
        """Set all counters to 0."""
        self._write(Management.COMMAND, 1 << Command.CLEAR_COUNTERS)
        await self.bench.until(lambda: self._management.is_empty)
        await self.bench.steps(2)

    @resume
    async def reset(self) -> None:
        """Clear configuration registers and queued weights, as after power-on; memories keep their contents."""
        await self.bench.reset()

    @resume
    async def scrub(self) -> None:
        """Clear memories, configuration registers, queued weights and counters."""
        self._write(Management.COMMAND, 1 << Command.SCRUB)
        end = self.bench.cycle + _PATIENCE
        while await self._read(Management.STATUS) >> CoreStatus.SCRUBBING & 1:
            assert self.bench.cycle < end, "the memories are not clear"

    def _on_event(self, payload: int) -> None:
        event = unpack(EventLayout, payload)
        self._events.append(Event(EventKind(event.kind), event.index, event.tag, FaultCode(event.fault)))
        if event.kind == EventKind.HOST_SYNCHRONIZE:
            self._write(Management.COMMAND, 1 << Command.ACKNOWLEDGE)

    def _write(self, address: int, value: int) -> None:
        self._management.send(pack(ManagementRequest, {"address": address, "write": 1, "data": value}))

    async def _read(self, address: int) -> int:
        count = len(self._responses.received)
        self._management.send(pack(ManagementRequest, {"address": address, "write": 0}))
        await self.bench.until(lambda: len(self._responses.received) > count)
        return self._responses.received[-1]
