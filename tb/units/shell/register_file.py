"""Register file: everything that is written and read is at the address given by the register map."""

import random

import cocotb

from openmxu.arch.registers import (
    ADDRESS_WIDTH,
    CORE_WINDOW,
    DEVICE_REGISTERS,
    Access,
    configuration_value,
    device_register,
)
from openmxu.rtl.common.interfaces import ManagementRequest
from openmxu.rtl.shell.interfaces import access_layout
from tb.bench import CONFIG, STALLS, Bench
from tb.models.payloads import pack, unpack

ACCESSES = 250

_OWN = [register for register in DEVICE_REGISTERS if not register.is_in_core]


class Registers:
    """The unit, connected to a model of a core's management port.

    Attributes
    ----------
    core
        Registers of the core, by address.
    """

    def __init__(self, bench: Bench, idle: float, backpressure: float) -> None:
        self.bench = bench
        self.core: dict[int, int] = {}
        for register in _OWN:
            port = bench.find(register.name.lower())
            if port is not None and register.access is Access.READ:
                port.value = 0
        for name in ("core_resets", "ring_busy", "interrupt_status_set"):
            bench.port(name).value = 0
        self.requests, self.responses = bench.source("requests", idle), bench.sink("responses", backpressure)
        self._answers = bench.source("management_response", idle)
        bench.sink("management", backpressure, on_transfer=self._serve)

    def _serve(self, payload: int) -> None:
        request = unpack(ManagementRequest, payload)
        if request.write:
            self.core[request.address] = request.data
        else:
            self._answers.send(self.core.get(request.address, 0))

    async def read_word(self, offset: int) -> int:
        count = len(self.responses.received)
        self.requests.send(pack(access_layout(ADDRESS_WIDTH), {"word": offset // 4, "data": random.getrandbits(32)}))
        await self.bench.until(lambda: len(self.responses.received) > count)
        return self.responses.received[-1]

    async def write_word(self, offset: int, value: int) -> None:
        self.requests.send(pack(access_layout(ADDRESS_WIDTH), {"word": offset // 4, "write": 1, "data": value}))
        await self.bench.until(lambda: self.requests.is_empty)
        await self.bench.step()

    async def read(self, register) -> int:
        low = await self.read_word(register.offset)
        return low | await self.read_word(register.offset + 4) << 32 if register.is_wide else low

    async def write(self, register, value: int) -> None:
        await self.write_word(register.offset, value & 0xFFFFFFFF)
        if register.is_wide:
            await self.write_word(register.offset + 4, value >> 32)


async def start(dut, idle=0.0, backpressure=0.0, unit="register_file"):
    """A bench with all inputs idle."""
    return Registers(await Bench.start(dut, unit), idle, backpressure)


BOTH = cocotb.parametrize(unit=["register_file", "small_register_file"])


@cocotb.test()
@STALLS
@BOTH
async def registers_read_back(dut, idle, backpressure, unit):
    registers = await start(dut, idle, backpressure, unit)
    bench = registers.bench
    held = [register for register in _OWN if register.access is Access.READ_WRITE and register.name != "RING_HEAD"]
    ports = {register.name: bench.port(register.name.lower()) for register in held}
    values = {name: device_register(name).initial for name in ports}
    for _ in range(ACCESSES):
        register = random.choice(held)
        if random.random() < 0.5:
            value = random.getrandbits(register.width)
            await registers.write(register, value)
            shift = register.alignment.bit_length() - 1
            values[register.name] = (value >> shift) % (1 << len(ports[register.name])) << shift
        assert await registers.read(register) == values[register.name]
        for name, port in ports.items():
            assert int(port.value) == values[name] >> device_register(name).alignment.bit_length() - 1, name


@cocotb.test()
@STALLS
@BOTH
async def inputs_are_read(dut, idle, backpressure, unit):
    registers = await start(dut, idle, backpressure, unit)
    readable = [
        (register, port)
        for register in _OWN
        if register.access is Access.READ and (port := registers.bench.find(register.name.lower())) is not None
    ]
    assert len(readable) == 9
    for _ in range(ACCESSES // 4):
        register, port = random.choice(readable)
        # In the small register file, no address has more than one word.
        value = random.getrandbits(len(port) if unit == "register_file" else min(32, len(port)))
        port.value = value
        assert await registers.read(register) == value * register.alignment
        if register.is_wide:
            # The high word belongs to the low word that was read last.
            low = await registers.read_word(register.offset)
            port.value = 0
            high = await registers.read_word(register.offset + 4)
            assert low | high << 32 == value


@cocotb.test()
@STALLS
async def core_registers_are_forwarded(dut, idle, backpressure):
    registers = await start(dut, idle, backpressure)
    expected: dict[int, int] = {}
    for _ in range(ACCESSES // 4):
        address = random.choice([0, 1, 4, 0x20, 0xFE, 0xFF])
        offset = CORE_WINDOW + 8 * address
        if random.random() < 0.5:
            value = random.getrandbits(64)
            await registers.write_word(offset, value & 0xFFFFFFFF)
            assert registers.core == expected  # only the high word completes the write
            await registers.write_word(offset + 4, value >> 32)
            await registers.bench.until(lambda: registers.requests.is_empty)
            expected[address] = value
            assert registers.core == expected
        else:
            low = await registers.read_word(offset)
            registers.core[address] = random.getrandbits(64)
            high = await registers.read_word(offset + 4)
            assert low | high << 32 == expected.get(address, 0)
            registers.core = expected.copy()


@cocotb.test()
@STALLS
async def small_core_registers_have_one_word(dut, idle, backpressure):
    """In the lite profile, the low word is the whole register."""
    registers = await start(dut, idle, backpressure, "small_register_file")
    expected: dict[int, int] = {}
    for _ in range(ACCESSES // 4):
        address = random.choice([1, 4, 0x20, 0xFE, 0xFF])
        offset = CORE_WINDOW + 8 * address
        if random.random() < 0.5:
            value = random.getrandbits(32)
            await registers.write_word(offset, value)
            await registers.write_word(offset + 4, random.getrandbits(32))
            await registers.bench.until(lambda: registers.requests.is_empty)
            expected[address] = value
            assert registers.core == expected
        else:
            assert await registers.read_word(offset) == expected.get(address, 0)
            assert await registers.read_word(offset + 4) == 0


@cocotb.test()
async def without_an_answer_a_core_in_reset_reads_as_zero(dut):
    registers = await start(dut, unit="small_register_file")
    bench = registers.bench
    registers.core = {1: (1 << 32) - 1}
    reset = bench.port("core_resets")
    offset = device_register("CORE_STATUS").offset
    for delay in range(6):
        assert await registers.read_word(offset) == (1 << 32) - 1
        count = len(registers.responses.received)
        registers.requests.send(pack(access_layout(ADDRESS_WIDTH), {"word": offset // 4}))
        await bench.steps(delay)
        registers._answers.clear()
        reset.value = 1
        await bench.until(lambda count=count: len(registers.responses.received) == count + 1)
        assert registers.responses.received[-1] in (0, (1 << 32) - 1)
        await bench.steps(4)
        registers._answers.clear()
        assert await registers.read_word(offset) == 0
        await registers.write_word(offset, 0)
        assert registers.core == {1: (1 << 32) - 1}
        reset.value = 0
        await bench.step()


@cocotb.test()
async def a_core_in_reset_reads_as_zero(dut):
    """The reset begins before the read, or while a request to the core is not answered."""
    registers = await start(dut)
    bench = registers.bench
    registers.core = {1: (1 << 64) - 1}
    reset = bench.port("core_resets")
    offset = device_register("CORE_STATUS").offset
    for delay in range(8):
        assert await registers.read(device_register("CORE_STATUS")) == (1 << 64) - 1
        registers.requests.send(pack(access_layout(ADDRESS_WIDTH), {"word": offset // 4}))
        count = len(registers.responses.received)
        registers._answers.clear()
        await bench.steps(delay)
        registers._answers.clear()
        reset.value = 1
        await bench.steps(6)
        registers._answers.clear()
        await bench.until(lambda count=count: len(registers.responses.received) == count + 1)
        assert registers.responses.received[-1] in (0, (1 << 32) - 1)
        if delay == 0:
            assert registers.responses.received[-1] == 0
        assert await registers.read(device_register("CORE_STATUS")) == 0
        reset.value = 0
        await bench.step()


@cocotb.test()
@BOTH
async def commands_act_once(dut, unit):
    registers = await start(dut, unit=unit)
    command, bench = device_register("COMMAND"), registers.bench
    port = bench.port("command")
    for value in range(1 << len(port)):
        await bench.steps(3)
        registers.requests.send(
            pack(access_layout(ADDRESS_WIDTH), {"word": command.offset // 4, "write": 1, "data": value})
        )
        seen = []
        for _ in range(8):
            await bench.step()
            seen.append(int(port.value))
        assert sorted(seen) == [0] * 7 + [value]


@cocotb.test()
@BOTH
async def interrupts_are_kept_until_cleared(dut, unit):
    registers = await start(dut, unit=unit)
    status, happens = device_register("INTERRUPT_STATUS"), registers.bench.port("interrupt_status_set")
    expected = 0
    for _ in range(60):
        bits = random.getrandbits(8) & random.getrandbits(8)
        happens.value = bits
        await registers.bench.step()
        happens.value = 0
        expected |= bits
        assert await registers.read(status) == expected
        cleared = random.getrandbits(8)
        await registers.write(status, cleared)
        expected &= ~cleared
        assert await registers.read(status) == expected
    # Interrupts that occur while they are being cleared are not lost.
    happens.value = 0xFF
    await registers.write(status, 0xFF)
    happens.value = 0
    assert await registers.read(status) == 0xFF


@cocotb.test()
@BOTH
async def the_ring_is_protected(dut, unit):
    registers = await start(dut, unit=unit)
    bench = registers.bench
    control, head = device_register("CONTROL"), device_register("RING_HEAD")
    base, size = device_register("RING_BASE"), device_register("RING_SIZE")
    await registers.write(head, 32)
    assert await registers.read(head) == 0
    await registers.write(base, 0x1230)
    await registers.write(size, 0x100)
    await registers.write(control, 1)
    await registers.write(head, 32)
    assert await registers.read(head) == 32
    bench.port("ring_busy").value = 1
    await registers.write(base, 0x5670)
    await registers.write(size, 0x200)
    assert await registers.read(base) == 0x1230
    assert await registers.read(size) == 0x100
    bench.port("core_resets").value = 1
    await bench.step()
    bench.port("core_resets").value = 0
    await bench.steps(2)
    assert await registers.read(control) == 0
    assert await registers.read(head) == 0
    assert await registers.read(base) == 0x1230


@cocotb.test()
async def constants(dut):
    registers = await start(dut)
    for register in _OWN:
        if register.parameter is not None:
            assert await registers.read(register) == configuration_value(CONFIG, register.parameter)
