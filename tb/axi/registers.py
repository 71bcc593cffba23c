"""The registers behind AXI4-Lite: writable ones read back as written, the others have their documented values."""

import random

import cocotb
from cocotb.triggers import gather
from cocotbext.axi import AxiResp

from openmxu.arch.events import IDENTIFICATION
from openmxu.arch.registers import (
    ADDRESS_WIDTH,
    DEVICE_REGISTERS,
    MAP_VERSION,
    WORD_BYTES,
    Access,
    configuration_value,
    device_register,
)
from tb.axi.system import AxiSystem
from tb.bench import CONFIG

ACCESSES = 300

_HELD = tuple(
    register
    for register in DEVICE_REGISTERS
    if register.access is Access.READ_WRITE and register.name not in ("CONTROL", "RING_HEAD")
)
"""Registers that keep what is written while the ring is not enabled."""


class Registers:
    """Accesses to single words and whole registers."""

    def __init__(self, system: AxiSystem) -> None:
        self.bus = system.registers

    async def write_word(self, offset: int, value: int) -> None:
        reply = await self.bus.write(offset, value.to_bytes(WORD_BYTES, "little"))
        assert reply.resp == AxiResp.OKAY

    async def read_word(self, offset: int) -> int:
        reply = await self.bus.read(offset, WORD_BYTES)
        assert reply.resp == AxiResp.OKAY
        return int.from_bytes(reply.data, "little")

    async def write(self, name: str, value: int) -> None:
        register = device_register(name)
        for place in range(register.width // 32):
            await self.write_word(register.offset + 4 * place, value >> 32 * place & 0xFFFFFFFF)

    async def read(self, name: str) -> int:
        register = device_register(name)
        return sum(
            [await self.read_word(register.offset + 4 * place) << 32 * place for place in range(register.width // 32)]
        )


def held(register, value: int) -> int:
    """The part of a value that a register keeps."""
    width = register.width
    if register.fields:
        width = max(field.offset + field.width for field in register.fields)
    elif register.address_parameter is not None:
        width = min(width, getattr(CONFIG, register.address_parameter))
    elif register.name in ("HOST_BASE", "HOST_LIMIT"):
        width = CONFIG.host_address_width + register.name.endswith("LIMIT")
    elif register.name in ("WEIGHT_BASE", "WEIGHT_LIMIT"):
        width = CONFIG.weight_address_width + register.name.endswith("LIMIT")
    return value & ((1 << width) - 1) & -register.alignment


@cocotb.test()
async def constants(dut):
    registers = Registers(await AxiSystem.start(dut, 0.2))
    assert await registers.read("IDENTIFICATION") == IDENTIFICATION
    assert await registers.read("SHELL") == 1 | MAP_VERSION << 8
    for register in DEVICE_REGISTERS:
        if register.parameter is not None:
            assert await registers.read(register.name) == configuration_value(CONFIG, register.parameter)


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4])
async def random_accesses(dut, stall):
    """Accesses to random registers, and to offsets without a register."""
    registers = Registers(await AxiSystem.start(dut, stall))
    values = {register.name: register.initial for register in _HELD}
    used = {register.offset + 4 * place for register in DEVICE_REGISTERS for place in range(register.width // 32)}
    free = sorted(set(range(0, 0x800, WORD_BYTES)) - used)
    for _ in range(ACCESSES):
        register = random.choice(_HELD)
        kind = random.random()
        if kind < 0.4:
            value = random.getrandbits(register.width)
            await registers.write(register.name, value)
            values[register.name] = held(register, value)
        elif kind < 0.8:
            assert await registers.read(register.name) == values[register.name], register.name
        elif kind < 0.9:
            offset = random.choice(free)
            await registers.write_word(offset, random.getrandbits(32))
            assert await registers.read_word(offset) == 0
        else:
            read_only = random.choice([item for item in DEVICE_REGISTERS if item.access is Access.READ])
            before = await registers.read(read_only.name)
            await registers.write(read_only.name, random.getrandbits(read_only.width))
            assert await registers.read(read_only.name) == before


@cocotb.test()
async def parts_of_words_are_refused(dut):
    """A write to some bytes of a word changes nothing and is answered with SLVERR."""
    system = await AxiSystem.start(dut, 0.1)
    registers = Registers(system)
    offset = device_register("INTERRUPT_ENABLE").offset
    await registers.write("INTERRUPT_ENABLE", 0x5A)
    for first in range(4):
        for length in range(1, 4 - first + (first > 0)):
            reply = await system.registers.write(offset + first, bytes([0xFF] * length))
            assert reply.resp == AxiResp.SLVERR
            assert await registers.read("INTERRUPT_ENABLE") == 0x5A


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4])
async def reads_and_writes_together(dut, stall):
    """Concurrent reads and writes never block each other, and a read never returns a mixture of two values."""
    registers = Registers(await AxiSystem.start(dut, stall))
    low, high = 0x1111 << CONFIG.host_address_width - 16, 0x2222 << CONFIG.host_address_width - 16
    low, high = (held(device_register("HOST_OFFSET"), value) for value in (low, high))
    await registers.write("HOST_OFFSET", low)

    async def write():
        for _ in range(40):
            await registers.write("HOST_OFFSET", random.choice([low, high]))

    async def read():
        for _ in range(40):
            assert await registers.read("HOST_OFFSET") in (low, high)

    await gather(write(), read())


@cocotb.test()
async def every_offset_is_answered(dut):
    """Every word can be read, also while the core is being reset."""
    registers = Registers(await AxiSystem.start(dut, 0.0))
    for offset in range(0, 1 << ADDRESS_WIDTH, WORD_BYTES):
        if offset % 64 == 0:
            await registers.write("COMMAND", 1)
        await registers.read_word(offset)
