"""Totals too large to be counted up to in a test: set in the counters' memory, from where one more carries."""

from __future__ import annotations

import random

from amaranth.hdl import Module
from amaranth.sim import Simulator

from openmxu.arch.config import Config
from openmxu.arch.events import Counter
from openmxu.rtl.dispatch.counters import WORD_BITS, Counters

BITS = 2 * WORD_BITS
RECENT = 64
"""Values of a counter's lowest bits, which are not in the memory only."""

LATENCY = 6
"""Cycles after which a word that was read before has been written back."""


class OpenCounters(Counters):
    """Counters with their memory as ``memory``, once they are elaborated."""

    def elaborate(self, platform: object) -> Module:
        module = super().elaborate(platform)
        self.memory = module.submodules.totals.data
        return module


def test_one_more_carries_into_every_bit():
    counters = OpenCounters(Config(size=2))
    names = [counter.name.lower() for counter in Counter]

    async def bench(ctx):
        memory = counters.memory

        async def count(times: int) -> None:
            ctx.set(counters.increments, dict.fromkeys(names, 1))
            await ctx.tick().repeat(times)
            ctx.set(counters.increments, dict.fromkeys(names, 0))

        await ctx.tick().repeat(counters.round_cycles + LATENCY)
        for bit in range(RECENT.bit_length() - 1, BITS):
            # The bits above keep any value, and all those below are 1.
            totals = [random.getrandbits(BITS) >> bit + 1 << bit + 1 | (1 << bit) - 1 for _ in Counter]
            await count(RECENT - 1)
            for _ in range(2):  # once more for the words that were under way
                for counter, total in zip(Counter, totals, strict=True):
                    ctx.set(memory[2 * counter], total % (1 << WORD_BITS))
                    ctx.set(memory[2 * counter + 1], total >> WORD_BITS)
                await ctx.tick().repeat(LATENCY)
            await count(1)
            await ctx.tick().repeat(2 * counters.round_cycles)
            found = [
                ctx.get(memory[2 * counter]) | ctx.get(memory[2 * counter + 1]) << WORD_BITS for counter in Counter
            ]
            assert found == [total + 1 for total in totals], f"carry into bit {bit}"

    simulator = Simulator(counters)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
