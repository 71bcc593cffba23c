"""Units that sleep behave, in every cycle, as those that do not."""

import random

import pytest
from amaranth.hdl import ClockSignal, Fragment, Instance, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from openmxu.rtl.simulation.sleeping_units import let_sleep


class Unit(wiring.Component):
    """Adds what its stream brings, a few cycles later, writes the sums to a memory, and reads what an address says."""

    def __init__(self, sleeps):
        self.sleeps = sleeps
        super().__init__(
            {
                "values": In(stream.Signature(8, always_ready=True)),
                "address": In(2),
                "side": In(8),
                "takes_side": In(1),
                "total": Out(8),
                "looked_up": Out(8),
                "echo": Out(8),
                "remembered": Out(8),
            }
        )

    @property
    def heeded(self):
        return [(self.side, self.takes_side)]

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=8, depth=4, init=[])
        read, write = memory.read_port(), memory.write_port()
        left, held = Signal(3), Signal(8, reset_less=True)
        with m.If(self.values.valid):
            m.d.sync += [left.eq(5), held.eq(self.values.payload)]
        with m.Elif(left != 0):
            m.d.sync += [left.eq(left - 1), self.total.eq(self.total + held)]
        with m.If(self.takes_side):
            m.d.sync += self.remembered.eq(self.side)
        # Two cycles after a write, which the unit must not sleep through.
        m.d.sync += self.looked_up.eq(read.data)
        m.d.comb += [
            # Always enabled, as the memories of queues are.
            write.en.eq(1),
            write.addr.eq(left),
            write.data.eq(self.total),
            read.en.eq(1),
            read.addr.eq(self.address),
            self.echo.eq(self.total ^ self.address),
        ]
        return m


class Pair(wiring.Component):
    """The unit twice, of which one sleeps, with the same inputs."""

    def __init__(self):
        self.units = [Unit(sleeps=False), Unit(sleeps=True)]
        super().__init__({"differs": Out(1)})

    def elaborate(self, platform):
        m = Module()
        for index, unit in enumerate(self.units):
            m.submodules[f"unit_{index}"] = unit
        first, second = self.units
        for name in ("address", "side", "takes_side"):
            m.d.comb += getattr(second, name).eq(getattr(first, name))
        m.d.comb += [
            second.values.valid.eq(first.values.valid),
            second.values.payload.eq(first.values.payload),
        ]
        m.d.comb += self.differs.eq(
            (first.echo != second.echo)
            | (first.total != second.total)
            | (first.looked_up != second.looked_up)
            | (first.remembered != second.remembered)
        )
        return m


def sleeping(component):
    fragment = Fragment.get(component, None)
    let_sleep(fragment)
    return fragment


def signal_of(fragment, name):
    """A signal that a fragment drives, by its name."""
    for statements in fragment.statements.values():
        for signal in statements._lhs_signals():
            if signal.name == name:
                return signal
    raise LookupError(name)


def test_a_unit_that_sleeps_has_the_same_outputs_in_every_cycle():
    pair = Pair()
    fragment = sleeping(pair)
    runs = signal_of(fragment.find_subfragment("unit_1"), "sleep_runs")
    slept = 0

    async def testbench(ctx):
        nonlocal slept
        choice = random.Random(1)
        unit = pair.units[0]
        for _ in range(3000):
            # What the unit does not heed changes all the time.
            ctx.set(unit.values.payload, choice.getrandbits(8))
            ctx.set(unit.side, choice.getrandbits(8))
            ctx.set(unit.values.valid, choice.random() < 0.03)
            ctx.set(unit.takes_side, choice.random() < 0.03)
            if choice.random() < 0.05:
                ctx.set(unit.address, choice.getrandbits(2))
            await ctx.tick()
            assert not ctx.get(pair.differs)
            slept += not ctx.get(runs)

    simulator = Simulator(fragment)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    assert slept > 1000


def test_a_unit_with_an_instance_cannot_sleep():
    class Black(wiring.Component):
        sleeps = True

        def __init__(self):
            super().__init__({"a": In(1), "b": Out(1)})

        def elaborate(self, platform):
            m = Module()
            held = Signal()
            m.d.sync += held.eq(self.a)
            m.submodules.box = Instance("box", i_clk=ClockSignal(), i_a=held, o_b=self.b)
            return m

    m = Module()
    m.submodules.black = Black()
    with pytest.raises(ValueError, match="instance of box"):
        let_sleep(Fragment.get(m, None))
