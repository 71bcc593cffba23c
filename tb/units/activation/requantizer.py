"""Requantizer against the numerics: random values, corner cases of float32, and sums next to ties."""

import cocotb
import numpy as np

from openmxu.arch.numerics import FRACTION_BITS, fixed_point
from openmxu.rtl.activation.requantizer import Requantizer
from openmxu.rtl.dispatch.commands import OutputLayout
from tb.bench import CONFIG, Bench, random_generator
from tb.models.payloads import pack, pack_lanes, unpack_lanes
from tb.models.scales import random_scales, random_totals

PASSES = 3000 // CONFIG.column_groups


def tie_completing(totals, scales, rng):
    """Totals and scales of second operands that move most sums to a tie, or one step away from it."""
    fixed = fixed_point(totals, scales)
    half = 1 << (FRACTION_BITS - 1)
    step = rng.integers(-1, 2, len(totals))
    missing = (half - fixed) % (2 * half) - 2 * half * rng.integers(0, 2, len(totals)) + step
    return missing.astype(np.int32), np.full(len(totals), np.float32(2.0**-FRACTION_BITS))


@cocotb.test()
@cocotb.parametrize(form=["requantizer", "requantizer_ecp5"], adds=[0.0, 0.5, 1.0])
async def every_value_is_exact(dut, form, adds):
    bench = await Bench.start(dut, form)
    rng = random_generator()
    groups = CONFIG.column_groups
    # Two passes for each result. If they are not added, only the second one counts.
    is_sum = np.repeat(rng.random(PASSES) < adds, groups)
    count = len(is_sum)
    first, first_scale = random_totals(rng, count), random_scales(rng, count)
    second, second_scale = random_totals(rng, count), random_scales(rng, count)
    tied, tied_scale = tie_completing(first, first_scale, rng)
    ties = rng.random(count) < 0.3
    second = np.where(ties & is_sum, tied, second)
    second_bits = np.where(ties & is_sum, tied_scale.view(np.uint32), second_scale.view(np.uint32))
    second_scale = second_bits.view(np.float32)

    limit = 1 << 17
    wide = rng.random(count) < 0.3
    limits = {
        "zero_point": np.where(wide, rng.integers(-limit, limit, count), rng.integers(-128, 256, count)),
        "minimum": np.where(wide, rng.integers(-limit, limit, count), rng.choice([-128, 0], count)),
        "maximum": np.where(wide, rng.integers(-limit, limit, count), rng.choice([127, 255], count)),
    }

    def passes(before, after):
        """Interleave the values of both passes, S/L at a time."""
        return np.stack([np.asarray(values).reshape(PASSES, groups) for values in (before, after)], axis=1).reshape(-1)

    def delayed(values, cycles):
        return [0] * cycles + list(values) + [0] * (Requantizer.latency - cycles)

    outputs = [
        pack(OutputLayout, {name: int(value) for name, value in zip(limits, row, strict=True)})
        for row in zip(*(passes(item, item) for item in limits.values()), strict=True)
    ]
    scales = passes(first_scale.view(np.uint32), second_bits)
    addition = Requantizer.addition_delay
    seen = await bench.play(
        {
            "total": delayed(pack_lanes(passes(first, second)[:, np.newaxis], 32), 0),
            "scale": delayed(scales.tolist(), Requantizer.scale_delay),
            "enable": delayed([1] * 2 * count, addition),
            "adds": delayed(passes(np.zeros(count, int), is_sum.astype(int)).tolist(), addition),
            "output": delayed(outputs, Requantizer.latency - Requantizer.output_lead),
        },
        ["value"],
    )
    got = unpack_lanes(seen["value"][Requantizer.latency :], 1, 16, signed=True)[:, 0]
    got = got.reshape(PASSES, 2, groups)[:, 1].reshape(-1)
    alone = [
        Requantizer.compute(second[i : i + 1], second_scale[i : i + 1], *row)[0]
        for i, row in enumerate(zip(*limits.values(), strict=True))
    ]
    summed = [
        Requantizer.compute_sum(
            first[i : i + 1], first_scale[i : i + 1], second[i : i + 1], second_scale[i : i + 1], *row
        )[0]
        for i, row in enumerate(zip(*limits.values(), strict=True))
    ]
    expected = np.where(is_sum, summed, alone).astype(np.int16)
    wrong = np.flatnonzero(got != expected)
    assert wrong.size == 0, [
        (is_sum[i], first[i], first_scale[i], second[i], second_scale[i], got[i], expected[i]) for i in wrong[:3]
    ]


@cocotb.test()
async def pauses_keep_the_first_operand(dut):
    """Only enabled totals replace the first operand of the next addition."""
    bench = await Bench.start(dut, "requantizer")
    rng = random_generator()
    groups = CONFIG.column_groups
    first, second = rng.integers(-100, 100, (2, groups))
    pause = int(rng.integers(1, 5))
    totals = np.concatenate([first, rng.integers(-100, 100, pause), second])
    total_cycles = len(totals) + Requantizer.latency

    def padded(values, before):
        return [0] * before + list(values) + [0] * (total_cycles - before - len(values))

    addition = Requantizer.addition_delay
    seen = await bench.play(
        {
            "total": padded(pack_lanes(totals[:, np.newaxis], 32), 0),
            "scale": [0x3F800000] * total_cycles,
            "enable": padded([1] * groups + [0] * pause + [1] * groups, addition),
            "adds": padded([0] * (groups + pause) + [1] * groups, addition),
            "output": [pack(OutputLayout, {"zero_point": 0, "minimum": -1000, "maximum": 1000})] * total_cycles,
        },
        ["value"],
    )
    got = unpack_lanes(seen["value"][Requantizer.latency + groups + pause :], 1, 16, signed=True)[:groups, 0]
    assert got.tolist() == (first + second).tolist()
