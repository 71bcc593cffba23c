"""Parameter memory: bytes in, biases and scales out."""

import cocotb
import numpy as np

from openmxu.rtl.parameter_memory import ParameterMemory
from tb.bench import CONFIG, Bench, random_generator
from tb.payloads import pack_lanes, unpack_lanes


@cocotb.test()
async def bytes_become_parameters(dut):
    bench = await Bench.start(dut, "parameter_memory")
    rng = random_generator()
    lanes, depth = CONFIG.activation_lanes, CONFIG.parameter_sets * CONFIG.column_groups
    content = rng.integers(0, 256, (depth, lanes, 8))
    order = rng.permutation(depth * 8)
    address, byte = order // 8, order % 8
    idle = np.zeros(len(order), int)
    await bench.play(
        {
            "write_enable": (idle + 1).tolist(),
            "write_address": address.tolist(),
            "write_byte": byte.tolist(),
            "write_data": pack_lanes(content[address, :, byte], 8),
            "read_address": idle.tolist(),
        },
        [],
    )
    reads = rng.integers(0, depth, 200)
    # Writes that are not enabled change nothing.
    seen = await bench.play(
        {
            "write_enable": [0] * 200,
            "write_address": rng.integers(0, depth, 200).tolist(),
            "write_byte": rng.integers(0, 8, 200).tolist(),
            "write_data": [0] * 200,
            "read_address": reads.tolist(),
        },
        ["read_data"],
    )
    got = unpack_lanes(seen["read_data"], 8 * lanes, 8, signed=False).reshape(-1, lanes, 8)
    latency = ParameterMemory.read_latency
    assert np.array_equal(got[latency:], content[reads[: 200 - latency]])
