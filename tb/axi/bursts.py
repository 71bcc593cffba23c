"""Bursts at 4 KiB boundaries, errors in any beat, and resets of the whole in the middle of bursts.

Every test of the shell fails when a port violates a rule of :mod:`tb.formal.axi.rules`; these go to the edges.
"""

import random

import cocotb
import numpy as np
import pytest
from cocotb.task import bridge, resume
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiResp

from openmxu.arch.events import IDENTIFICATION
from openmxu.arch.isa import format_named
from openmxu.arch.registers import BusPort, device_register
from openmxu.compiler.benchmark import gemm, gemm_input
from openmxu.driver import DeviceBusError, MappedDevice
from openmxu.sim.interpreter import Interpreter
from tb.axi.system import AxiSystem
from tb.bench import CONFIG, random_generator

COPIES = 12
ERRORS = 12
RESETS = 8

_READ = format_named("Read_Host_Memory")
_WRITE = format_named("Write_Host_Memory")
_HALT = format_named("Halt")()
_PAGE = 4096


def product(seed: int):
    """A matrix product with its input and result."""
    program = gemm(3 * CONFIG.size, 2 * CONFIG.size, 2 * CONFIG.size, CONFIG, seed=seed)
    given = gemm_input(3 * CONFIG.size, 2 * CONFIG.size, seed=seed)
    return program, given, program.run(Interpreter(CONFIG), given)["y"]


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4])
async def pages(dut, stall):
    """Copies from and to places just before and after multiples of 4 KiB, aligned to rows but not to beats."""
    system, reference = await AxiSystem.start(dut, stall), Interpreter(CONFIG)
    content = random_generator().integers(0, 256, 4 * _PAGE, np.uint8)
    size = CONFIG.size

    def place() -> int:
        return random.randrange(1, 3) * _PAGE + size * random.randrange(-20, 20)

    @bridge
    def run():
        device = MappedDevice(system)
        for _ in range(COPIES):
            rows = random.choice([1, random.randrange(1, 40), random.randrange(1, CONFIG.unified_buffer_rows)])
            program = [_READ(unified_buffer=0, rows=rows, host=place())]
            program += [_WRITE(unified_buffer=0, rows=rows, host=place()), _HALT]
            mine, other = content.copy(), content.copy()
            device.execute(program, mine, np.zeros(0, np.uint8))
            reference.execute(program, other, np.zeros(0, np.uint8))
            assert np.array_equal(mine, other), program

    await run()


@cocotb.test()
async def errors_in_any_beat(dut):
    """SLVERR or DECERR in one beat of any port: the driver reports it, and the next program runs correctly."""
    system = await AxiSystem.start(dut, 0.2)
    program, given, expected = product(1)
    (output,) = program.segments[0].outputs
    ports = {
        BusPort.PROGRAM: (system.host_reads, "RING_BASE", 0, 64),
        BusPort.HOST_READ: (system.host_reads, "HOST_OFFSET", 0, given.nbytes),
        BusPort.HOST_WRITE: (system.host_writes, "HOST_OFFSET", output.offset, expected.size),
        BusPort.WEIGHTS: (system.weights, "WEIGHT_OFFSET", 0, 4 * CONFIG.tile_bytes),
    }

    @bridge
    def run():
        device = MappedDevice(system)
        assert np.array_equal(program.run(device, given)["y"], expected)
        seen = set()
        for number in range(ERRORS):
            port = list(ports)[number % len(ports)]
            model, register, offset, length = ports[port]
            width = CONFIG.weight_data_bytes if port is BusPort.WEIGHTS else CONFIG.host_data_bytes
            address = system.read_register(device_register(register).offset) + offset + random.randrange(length)
            model.bad = range(address - address % width, address - address % width + width)
            model.reply = random.choice([AxiResp.SLVERR, AxiResp.DECERR])
            with pytest.raises(DeviceBusError, match=f"with {model.reply.name}$") as caught:
                program.run(device, given)
            assert caught.value.port is port
            assert caught.value.address <= address < caught.value.address + 256 * width
            seen.add((port, model.reply))
            model.bad = range(0)
            assert np.array_equal(program.run(device, given)["y"], expected)
        assert {port for port, _ in seen} == set(ports)
        assert {reply for _, reply in seen} == {AxiResp.SLVERR, AxiResp.DECERR}

    await run()


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4])
async def resets_of_everything(dut, stall):
    """``aresetn`` in any cycle of a program, the memories reset with it: the next program runs correctly."""
    system = await AxiSystem.start(dut, stall)
    program, given, expected = product(2)
    reset = resume(system.reset_all)

    @bridge
    def run():
        interrupted = 0
        for _ in range(RESETS):
            system.patience = random.randrange(1, 600)
            try:
                program.run(MappedDevice(system), given)
            except InterruptedError:
                interrupted += 1
            reset()
            system.patience = None
            assert np.array_equal(program.run(MappedDevice(system), given)["y"], expected)
        assert interrupted == RESETS

    await run()


@cocotb.test()
async def resets_of_accesses(dut):
    """``aresetn`` in any cycle of an access of a register: later ones are answered, each once."""
    system = await AxiSystem.start(dut, 0.3)
    place = device_register("IDENTIFICATION").offset
    bus = system.registers
    for _ in range(40):
        started = random.choice([bus.init_read(place, 4), bus.init_write(place, bytes(4))])
        await ClockCycles(dut.axi__aclk, random.randrange(1, 12))
        await system.reset_all()
        assert started.is_set()
        reply = await bus.read(place, 4)
        assert reply.data == (IDENTIFICATION & 0xFFFFFFFF).to_bytes(4, "little")


@cocotb.test()
async def violations_are_seen(dut):
    """Data that answers no burst, and an address that is withdrawn, violate the rules that they should."""
    system = await AxiSystem.start(dut, 0.0, is_watched=False)
    dut.axi__m_axi_weight_rvalid.value = 1
    await ClockCycles(dut.axi__aclk, 2)
    dut.axi__m_axi_weight_rvalid.value = 0
    dut.axi__s_axi_awvalid.value = 1
    await ClockCycles(dut.axi__aclk, 1)
    dut.axi__s_axi_awvalid.value = 0
    await ClockCycles(dut.axi__aclk, 3)
    found = system.violations()
    assert "weights, read: R: data answers a burst" in found
    assert "registers: AW: VALID stays until READY" in found
    assert not any(rule.startswith("host memory") for rule in found)
