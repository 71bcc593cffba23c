"""Management: counters, windows, status and commands in 64-bit registers."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.events import IDENTIFICATION, STATUS_UNITS_OFFSET, Command, Counter
from openmxu.arch.events import Management as Address
from openmxu.arch.isa import UNITS
from openmxu.rtl.common.interfaces import ManagementRequest
from openmxu.rtl.dispatch.instruction_check import MemoryWindows

__all__ = ["Management", "increments_layout"]

_GROUP = 8
"""Registers that one is chosen of in a cycle."""


def increments_layout() -> data.StructLayout:
    """By how much each counter grows in this cycle."""
    return data.StructLayout({counter.name.lower(): 7 if "BYTES" in counter.name else 1 for counter in Counter})


class Management(wiring.Component):
    """The host's view of the core, besides instructions and events.

    Members
    -------
    requests, responses
        Register accesses; a read is answered in order, a write is not answered.
    increments
        For the counters.
    units_busy, running, faulted, waiting, scrubbing
        For the STATUS register.
    windows
        See :class:`~openmxu.rtl.dispatch.instruction_check.MemoryWindows`; empty after reset.
    clear_fault, acknowledge, scrub
        Set for one cycle when the host writes them to the COMMAND register.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "requests": In(stream.Signature(ManagementRequest)),
                "responses": Out(stream.Signature(64)),
                "increments": In(increments_layout()),
                "units_busy": In(len(UNITS)),
                "running": In(1),
                "faulted": In(1),
                "waiting": In(1),
                "scrubbing": In(1),
                "windows": Out(MemoryWindows(config)),
                "clear_fault": Out(1),
                "acknowledge": Out(1),
                "scrub": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # One access at a time: where the host is slow, registers in the way of many wires cost nothing.
        offered = self.requests.p
        # No register that is written is wider.
        widest = max(field.width for _, field in MemoryWindows(self._config))
        request = Signal(
            data.StructLayout({"address": offered.address.shape(), "write": 1, "data": widest}), reset_less=True
        )
        stages = Signal(2)
        taken = Signal()
        write = Signal()
        m.d.comb += [
            taken.eq(self.requests.valid & self.requests.ready),
            write.eq(stages[0] & request.write),
        ]
        m.d.sync += [
            stages.eq(Cat(taken, stages[0] & ~request.write)),
            self.requests.ready.eq((stages == 0) & ~self.responses.valid & ~taken),
        ]
        with m.If(taken):
            m.d.sync += [
                request.address.eq(offered.address),
                request.write.eq(offered.write),
                request.data.eq(offered.data),
            ]

        is_command = write & (request.address == Address.COMMAND)
        clears, clear = Signal(), Signal()
        was_scrubbing = Signal()
        # In registers, because they go far.
        m.d.sync += [
            was_scrubbing.eq(self.scrubbing),
            clear.eq(clears),
            clears.eq((is_command & request.data[Command.CLEAR_COUNTERS]) | (was_scrubbing & ~self.scrubbing)),
            self.clear_fault.eq(is_command & request.data[Command.CLEAR_FAULT]),
            self.acknowledge.eq(is_command & request.data[Command.ACKNOWLEDGE]),
            self.scrub.eq(is_command & request.data[Command.SCRUB]),
        ]
        # What is counted comes from far away, and the counters' carry chains are long.
        coming, increments = (Signal(increments_layout(), name=name) for name in ("coming", "increments"))
        m.d.sync += [coming.eq(self.increments), increments.eq(coming)]
        # Makes no difference to what is counted, but keeps these registers apart from equal ones that are elsewhere.
        with m.If(clears):
            m.d.sync += increments.eq(0)
        counters = []
        for counter in Counter:
            value = Signal(64, name=counter.name.lower())
            m.d.sync += value.eq(value + increments[counter.name.lower()])
            with m.If(clear):
                m.d.sync += value.eq(0)
            counters.append(value)

        windows = {
            Address.HOST_BASE: self.windows.host_base,
            Address.HOST_LIMIT: self.windows.host_limit,
            Address.WEIGHT_BASE: self.windows.weight_base,
            Address.WEIGHT_LIMIT: self.windows.weight_limit,
        }
        for address, register in windows.items():
            with m.If(write & (request.address == address)):
                m.d.sync += register.eq(request.data)

        flags = (self.running, self.faulted, self.waiting, self.scrubbing)
        status = Cat(*flags, Const(0, STATUS_UNITS_OFFSET - len(flags)), self.units_busy)
        registers = {Address.IDENTIFICATION: Const(IDENTIFICATION, 64), Address.STATUS: status} | windows
        registers |= {Address.COUNTERS + counter: counters[counter] for counter in Counter}
        # Registers are chosen among those of the same group, then among groups.
        groups = {}
        for address, register in registers.items():
            groups.setdefault(address // _GROUP, {})[address % _GROUP] = register
        values = {}
        for number, members in groups.items():
            values[number] = value = Signal(64, name=f"group_{number}", reset_less=True)
            with m.Switch(request.address[: ceil_log2(_GROUP)]):
                for place, register in members.items():
                    with m.Case(place):
                        m.d.sync += value.eq(register)
                with m.Default():
                    m.d.sync += value.eq(0)
        chosen = Signal(64)
        with m.Switch(request.address[ceil_log2(_GROUP) :]):
            for number, value in values.items():
                with m.Case(number):
                    m.d.comb += chosen.eq(value)
        with m.If(stages[1]):
            m.d.sync += [self.responses.valid.eq(1), self.responses.payload.eq(chosen)]
        with m.Elif(self.responses.ready):
            m.d.sync += self.responses.valid.eq(0)
        return m
