"""Parameter memory: bytes are written, biases and scales are read."""

import cocotb
import numpy as np

from openmxu.rtl.activation.parameter_memory import ParameterMemory, parameter_write_layout
from tb.bench import CONFIG, Bench, random_generator
from tb.models.payloads import pack, unpack_lanes

READS = 200


@cocotb.test()
async def bytes_become_parameters(dut):
    bench = await Bench.start(dut, "parameter_memory")
    rng = random_generator()
    lanes, depth = CONFIG.activation_lanes, CONFIG.parameter_sets * CONFIG.column_groups
    layout = parameter_write_layout(CONFIG)
    content = rng.integers(0, 256, (depth, lanes, 8))
    writes = [
        pack(layout, {"enable": 1, "address": place, "byte": byte, "data": content[place, :, byte].tolist()})
        for place, byte in (divmod(index, 8) for index in rng.permutation(depth * 8).tolist())
    ]
    idle = [0] * len(writes)
    await bench.play({"write": writes, "bias_address": idle, "scale_address": idle}, [])
    bias_reads, scale_reads = rng.integers(0, depth, (2, READS))
    # Writes without `enable` change nothing.
    disabled = [
        pack(layout, {"address": int(rng.integers(0, depth)), "byte": int(rng.integers(0, 8))}) for _ in range(READS)
    ]
    seen = await bench.play(
        {"write": disabled, "bias_address": bias_reads.tolist(), "scale_address": scale_reads.tolist()},
        ["biases", "scales"],
    )
    latency = ParameterMemory.read_latency
    for name, reads, bytes_ in (("biases", bias_reads, slice(0, 4)), ("scales", scale_reads, slice(4, 8))):
        got = unpack_lanes(seen[name], 4 * lanes, 8, signed=False).reshape(-1, lanes, 4)
        assert np.array_equal(got[latency:], content[reads[: READS - latency], :, bytes_])
