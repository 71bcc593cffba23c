"""Memory range: random accesses near the ends of their window, of the address space and of the fields."""

import random

import cocotb

from openmxu.arch.effects import host_extent
from openmxu.arch.isa import FORMATS, Opcode
from openmxu.rtl.dispatch.check.memory_range import MemoryWindows
from tb.bench import CONFIG, Bench
from tb.models.payloads import pack

RUNS = 1000
ALTERNATES = (Opcode.READ_HOST_MEMORY_ALTERNATE, Opcode.WRITE_HOST_MEMORY_ALTERNATE)
TRANSFERS = (Opcode.READ_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY, *ALTERNATES)


def some(width):
    """A random value, often at an end of the range."""
    return random.choice([0, 1, (1 << width) - 1, random.getrandbits(width), random.getrandbits(min(width, 5))])


def near(value, step, limit):
    """A value up to two steps below or above another one, clipped to 0 and ``limit``."""
    return max(0, min(limit, value + random.randrange(-2, 3) * step))


def word_of(opcode, **values):
    return next(format for format in FORMATS if format.opcode == opcode)(**values).word


@cocotb.test()
@cocotb.parametrize(form=["memory_range", "memory_range_ecp5"])
async def ranges_outside_the_window_are_found(dut, form):
    bench = await Bench.start(dut, form)
    load, start = bench.port("load"), bench.port("start")
    new_word, stride_input = bench.port("new_word"), bench.port("stride")
    windows, done, end, outside = (bench.port(name) for name in ("windows", "done", "end", "outside"))
    seen = set()
    for _ in range(RUNS):
        reads_weights = random.random() < 0.3
        width = CONFIG.weight_address_width if reads_weights else CONFIG.host_address_width
        alignment = CONFIG.weight_alignment if reads_weights else CONFIG.host_alignment
        stride = some(random.choice([8, 16, 32])) // CONFIG.host_alignment * CONFIG.host_alignment
        if reads_weights:
            opcode, count, field = Opcode.READ_WEIGHTS, max(1, some(16)), "tiles"
            length = count * CONFIG.tile_bytes
        else:
            opcode, field = random.choice(TRANSFERS), "rows"
            # More rows than the unified buffer has would be another fault.
            count = random.randint(1, CONFIG.unified_buffer_rows) if random.random() < 0.8 else 1
            length = host_extent(count, CONFIG.size, stride if opcode in ALTERNATES else CONFIG.size)
        base, limit = sorted([some(width), random.choice([some(width), 1 << width])])
        addresses = [base, limit - length, limit, (1 << width) - length, 1 << width, some(width), some(64)]
        address = near(random.choice(addresses), alignment, (1 << 64) - 1) // alignment * alignment
        one = {"base": base, "limit": near(address + length, 1, 1 << width) if random.random() < 0.5 else limit}
        other = {"base": some(10), "limit": some(10)}
        host, weights = (other, one) if reads_weights else (one, other)
        new_word.value = word_of(opcode, **{field: count, "weights" if reads_weights else "host": address})
        stride_input.value = stride
        windows.value = pack(
            MemoryWindows(CONFIG),
            {f"{name}_{edge}": each[edge] for name, each in (("host", host), ("weight", weights)) for edge in each},
        )
        load.value = 1
        await bench.step()
        load.value, start.value = 0, 1
        new_word.value = random.getrandbits(128)
        begin = bench.cycle
        await bench.step()
        start.value = 0
        await bench.step()
        await bench.until(lambda: int(done.value), 40)
        assert bench.cycle - begin == 2 + ((count - 1).bit_length() or 1 if opcode in ALTERNATES else 0)
        await bench.step()
        expected = address < one["base"] or address + length > one["limit"]
        assert int(outside.value) == expected, (opcode, hex(address), length, one)
        if address + length <= 1 << width:
            assert int(end.value) == address + length
        seen.add((opcode, expected))
        load.value = 1
        await bench.steps(random.randrange(3))
    assert seen == {(opcode, expected) for opcode in (*TRANSFERS, Opcode.READ_WEIGHTS) for expected in (False, True)}
