"""The AXI shell connected to models of cocotbext-axi: the registers as a processor sees them, and two memories."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator

import cocotb
from cocotb.clock import Clock
from cocotb.handle import HierarchyObject
from cocotb.task import resume
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import (
    AxiBus,
    AxiLiteBus,
    AxiLiteMaster,
    AxiRamRead,
    AxiRamWrite,
    AxiReadBus,
    AxiResp,
)

from openmxu.driver import MemoryKind, Region, Transport
from tb.bench import CONFIG

__all__ = ["HOST", "WEIGHTS", "AxiSystem", "MemoryReads", "MemoryWrites"]

HOST = Region(0x8000, 1 << 20)
"""Range of host memory that the driver may use."""

WEIGHTS = Region(0x3000, 1 << 20)
"""Range of weight memory that the driver may use."""

_MEMORY_BYTES = 1 << 21
_POLL_CYCLES = 100
_WAIT_CYCLES = 30_000
"""Cycles between two polls of the interrupt, and cycles after which ``wait`` returns at the latest."""


def _pauses(probability: float) -> Iterator[bool]:
    while True:
        yield random.random() < probability


class _Slow:
    """The common part of both halves of a memory: delayed beats, and addresses that answer with an error.

    Attributes
    ----------
    bad
        Addresses of beats that are answered with an error.
    reply
        The error: SLVERR or DECERR.
    """

    _answers: str
    """The channel of answers."""

    def __init__(self, *arguments: object, stall: float, **options: object) -> None:
        super().__init__(*arguments, **options)
        self.bad = range(0)
        self.reply = AxiResp.SLVERR
        self._late = stall / 16
        channel = getattr(self, f"{self._answers}_channel")
        send = channel.send

        async def send_with_reply(beat: object) -> None:
            name = f"{self._answers}resp"
            if getattr(beat, name) == AxiResp.SLVERR:
                setattr(beat, name, self.reply)
            await send(beat)

        channel.send = send_with_reply

    async def _delay(self, address: int) -> None:
        if random.random() < self._late:
            await ClockCycles(self.clock, random.randrange(1, 60))
        if address in self.bad:
            raise OSError(f"no memory at {address:#x}")


class MemoryReads(_Slow, AxiRamRead):
    """The read channels of a memory."""

    _answers = "r"

    async def _read(self, address: int, length: int) -> bytes:
        await self._delay(address)
        return await super()._read(address, length)


class MemoryWrites(_Slow, AxiRamWrite):
    """The write channels of a memory."""

    _answers = "b"

    async def _write(self, address: int, data: bytes) -> None:
        await self._delay(address)
        await super()._write(address, data)


class AxiSystem(Transport):
    """The shell of a rack in its system. The methods block, so call them in a function that ``cocotb.task.bridge`` has
    wrapped.

    Parameters
    ----------
    dut
        The rack.
    stall
        Probability that a channel pauses in a cycle, on the side of the models; memories are slow in proportion.

    Attributes
    ----------
    host_reads, host_writes, weights
        Memory models.
    patience
        Cycles after which ``wait`` raises ``InterruptedError`` in any case; ``None`` (the default) disables this.
    """

    def __init__(self, dut: HierarchyObject, stall: float) -> None:
        self._dut = dut
        self._clock = clock = dut.axi__aclk
        logging.getLogger("cocotb.rack").setLevel(logging.WARNING)
        host_bus = AxiBus.from_prefix(dut, "axi__m_axi_host")
        host, weights = bytearray(_MEMORY_BYTES), bytearray(_MEMORY_BYTES)
        self.host_reads = MemoryReads(host_bus.read, clock, mem=host, stall=stall)
        self.host_writes = MemoryWrites(host_bus.write, clock, mem=host, stall=stall)
        weight_bus = AxiReadBus.from_prefix(dut, "axi__m_axi_weight")
        self.weights = MemoryReads(weight_bus, clock, mem=weights, stall=stall)
        self.patience: int | None = None
        self._memories = {MemoryKind.HOST: host, MemoryKind.WEIGHT: weights}
        self.registers = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "axi__s_axi"), clock)
        self._models = (
            *(self.host_reads, self.host_writes, self.weights),
            *(self.registers.read_if, self.registers.write_if),
        )
        names = [f"{name}_channel" for name in ("aw", "w", "b", "ar", "r")]
        self._channels = [getattr(model, name) for model in self._models for name in names if hasattr(model, name)]
        if stall:
            for channel in self._channels:
                channel.set_pause_generator(_pauses(stall))

    async def _watch(self) -> None:
        """Fail when a rule of AXI is violated by either side of a port."""
        await RisingEdge(self._dut.axi__violated)
        raise AssertionError("; ".join(self.violations()))

    def violations(self) -> list[str]:
        """The rules of AXI that either side of a port has violated since the last reset."""
        # Imported here because a simulation without violations needs no Amaranth.
        from tb.formal.axi.watch import rule_names

        found = int(self._dut.axi__violations.value)
        return [rule for place, rule in enumerate(rule_names(CONFIG)) if found >> place & 1]

    async def reset_all(self) -> None:
        """Reset the shell and everything around it for a few cycles, whatever is under way. Unlike the other methods
        this one is a coroutine."""
        models = [*self._models, *self._channels]
        self._dut.axi__aresetn.value = 0
        for model in models:
            model.assert_reset(True)
        await ClockCycles(self._clock, random.randrange(1, 5))
        self._dut.axi__aresetn.value = 1
        for model in models:
            model.assert_reset(False)
        await ClockCycles(self._clock, 1)

    @classmethod
    async def start(cls, dut: HierarchyObject, stall: float, *, is_watched: bool = True) -> AxiSystem:
        """Start the clock, reset the shell and connect it to its system. While it is watched, a violation of AXI by
        either side of a port fails the test."""
        dut.axi__aresetn.value = 0
        for name in ("awprot", "arprot"):
            getattr(dut, f"axi__s_axi_{name}").value = 0
        Clock(dut.axi__aclk, 2, unit="ns").start()
        system = cls(dut, stall)
        await ClockCycles(dut.axi__aclk, 4)
        dut.axi__aresetn.value = 1
        await ClockCycles(dut.axi__aclk, 2)
        if is_watched:
            cocotb.start_soon(system._watch())
        return system

    @resume
    async def read_register(self, offset: int) -> int:
        """Read the 32-bit word at a byte offset of the registers."""
        reply = await self.registers.read(offset, 4)
        assert reply.resp == AxiResp.OKAY
        return int.from_bytes(reply.data, "little")

    @resume
    async def write_register(self, offset: int, value: int) -> None:
        """Write the 32-bit word at a byte offset of the registers."""
        reply = await self.registers.write(offset, value.to_bytes(4, "little"))
        assert reply.resp == AxiResp.OKAY

    def region(self, memory: MemoryKind) -> Region:
        """The range of a memory that the driver may use."""
        return HOST if memory is MemoryKind.HOST else WEIGHTS

    def read_memory(self, memory: MemoryKind, address: int, size: int) -> bytes:
        """Read bytes of a memory."""
        return bytes(self._memories[memory][address : address + size])

    def write_memory(self, memory: MemoryKind, address: int, content: bytes | memoryview) -> None:
        """Write bytes of a memory."""
        self._memories[memory][address : address + len(content)] = content

    @resume
    async def wait(self) -> bool:
        """Wait for the interrupt, for a limited time; returns whether it is set."""
        if self.patience is not None:
            await ClockCycles(self._clock, self.patience)
            raise InterruptedError
        for _ in range(_WAIT_CYCLES // _POLL_CYCLES):
            if int(self._dut.axi__irq.value):
                return True
            await ClockCycles(self._clock, _POLL_CYCLES)
        return False
