"""Memories that answer with errors, and resets at any time: the next program runs correctly in every case."""

import random

import cocotb
import numpy as np
import pytest
from cocotb.task import bridge

from openmxu.arch.isa import format_named
from openmxu.arch.registers import BusPort, device_register
from openmxu.compiler.benchmark import gemm, gemm_input
from openmxu.driver import DeviceBusError, MappedDevice, MemoryKind
from openmxu.sim.interpreter import Interpreter
from tb.axi.system import AxiSystem
from tb.bench import CONFIG

RESETS = 15

_HALT = format_named("Halt")()


class Product:
    """A compiled matrix product and its expected result."""

    def __init__(self, seed: int) -> None:
        self.program = gemm(3 * CONFIG.size, 2 * CONFIG.size, 2 * CONFIG.size, CONFIG, seed=seed)
        self.given = gemm_input(3 * CONFIG.size, 2 * CONFIG.size, seed=seed)
        self.expected = self.program.run(Interpreter(CONFIG), self.given)["y"]

    def check(self, device: MappedDevice) -> None:
        """Run the product and compare the result."""
        assert np.array_equal(self.program.run(device, self.given)["y"], self.expected)


@cocotb.test()
@cocotb.parametrize(port=list(BusPort), stall=[0.0, 0.3])
async def error_replies(dut, port, stall):
    """Each port in turn gets an error reply: the driver reports port and address, and the device recovers."""
    system = await AxiSystem.start(dut, stall)
    model = {
        BusPort.HOST_READ: system.host_reads,
        BusPort.HOST_WRITE: system.host_writes,
        BusPort.WEIGHTS: system.weights,
        BusPort.PROGRAM: system.host_reads,
    }[port]
    product = Product(1)
    places = {BusPort.PROGRAM: "RING_BASE", BusPort.WEIGHTS: "WEIGHT_OFFSET"}
    place = device_register(places.get(port, "HOST_OFFSET")).offset

    @bridge
    def run():
        device = MappedDevice(system)
        for _ in range(3):
            product.check(device)
            first = system.read_register(place)
            model.bad = range(first, first + 1)
            if port is BusPort.HOST_WRITE:
                (output,) = product.program.segments[0].outputs
                first += output.offset
                model.bad = range(first, first + CONFIG.host_data_bytes)
            with pytest.raises(DeviceBusError, match=f"BUS_ERROR: {port.name.lower()}: .* with SLVERR$") as caught:
                product.check(device)
            error = caught.value
            width = CONFIG.weight_data_bytes if port is BusPort.WEIGHTS else CONFIG.host_data_bytes
            assert error.port is port
            assert error.address <= first < error.address + 256 * width
            assert error.address // 4096 == first // 4096
            model.bad = range(0)
        product.check(device)

    await run()


@cocotb.test()
async def nothing_is_executed_after_an_error(dut):
    """Instructions fetched with an error, and those after them, never reach the core."""
    system = await AxiSystem.start(dut, 0.2)

    class Watched(MappedDevice):
        """Keeps the tags of all events, which a reset would discard."""

        def _take_events(self):
            self.events = super()._take_events()
            return self.events

        def _bus_error(self, *arguments):
            self.tags = [event.tag for event in [*self.events, *self._take_events()]]
            return super()._bus_error(*arguments)

    @bridge
    def run():
        device = Watched(system)
        ring = system.region(MemoryKind.HOST).base
        for place in (0, 1, 5, 100):
            first = ring + 16 * place
            first -= first % CONFIG.host_data_bytes
            system.host_reads.bad = range(first, first + CONFIG.host_data_bytes)
            tags = [format_named("Debug_Tag")(tag=index) for index in range(200)]
            device.events = []
            with pytest.raises(DeviceBusError, match=r"BUS_ERROR: program: "):
                device.execute([*tags, _HALT], np.zeros(0, np.uint8), np.zeros(0, np.uint8))
            assert all(tag < place for tag in device.tags)
            system.host_reads.bad = range(0)
            (halt,) = device.execute([_HALT], np.zeros(0, np.uint8), np.zeros(0, np.uint8))
            assert halt.index == 0

    await run()


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4])
async def resets(dut, stall):
    """A reset in any cycle of a program: bursts end as AXI demands, and the next program runs correctly."""
    system = await AxiSystem.start(dut, stall)
    product = Product(2)

    @bridge
    def run():
        device = MappedDevice(system)
        product.check(device)
        for _ in range(RESETS):
            system.patience = random.randrange(1, 900)
            try:
                product.check(device)
            except InterruptedError:
                device.reset()
            system.patience = None
            product.check(device)

    await run()
