"""Bus errors: keeps the first error, with the port where it occurred."""

import random

import cocotb

from openmxu.arch.registers import BusPort
from openmxu.rtl.shell.bus_errors import HOST_CLIENTS, WEIGHT_CLIENTS, bus_error_layout
from openmxu.rtl.shell.interfaces import read_error_layout, write_error_layout
from tb.bench import CONFIG, Bench
from tb.models.payloads import pack, unpack

ROUNDS = 40


@cocotb.test()
@cocotb.parametrize(unit=["bus_errors", "bus_errors_small"])
async def the_first_error_is_kept(dut, unit):
    bench = await Bench.start(dut, unit)
    host, weights = CONFIG.host_address_width, CONFIG.weight_address_width
    sources = {
        "host_reads": (read_error_layout(host, len(HOST_CLIENTS)), host, list(HOST_CLIENTS.values())),
        "host_writes": (write_error_layout(host), host, [BusPort.HOST_WRITE]),
        "weights": (read_error_layout(weights, len(WEIGHT_CLIENTS)), weights, [BusPort.WEIGHTS]),
    }
    for _ in range(ROUNDS):
        for name in sources:
            bench.port(f"{name}__valid").value = 0
        await bench.reset()
        await bench.step()
        assert not int(bench.port("pending").value)
        expected = None
        for _ in range(8):
            first = None
            for name, (layout, width, ports) in sources.items():
                valid = random.random() < 0.2
                client = random.randrange(len(ports))
                fields = {"resp": random.choice([2, 3]), "addr": random.getrandbits(width)}
                if "client" in dict(layout):
                    payload = pack(layout, {"client": client, **fields})
                else:
                    payload = pack(layout, fields)
                bench.port(f"{name}__valid").value = int(valid)
                bench.port(f"{name}__payload").value = payload
                if valid and first is None:
                    first = (ports[client], fields["resp"], fields["addr"])
            await bench.step()  # it is registered at the end of this cycle
            expected = expected or first
            for name in sources:
                bench.port(f"{name}__valid").value = 0
            await bench.step()
            await bench.step()  # `pending` may be set one cycle after the error is kept
            assert bool(int(bench.port("pending").value)) == (expected is not None)
            if expected is not None:
                got = unpack(bus_error_layout(CONFIG), int(bench.port("first").value))
                assert (got.port, got.resp, got.addr) == expected
