"""Management of the lite profile: a counter, windows, status and commands."""

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.arch.events import IDENTIFICATION, STATUS_UNITS_OFFSET, Command, Counter
from openmxu.arch.events import Management as Address
from openmxu.arch.isa import UNITS
from openmxu.rtl.common.interfaces import ManagementRequest
from openmxu.rtl.dispatch.check.memory_range import MemoryWindows

__all__ = ["LiteManagement"]


class LiteManagement(wiring.Component):
    """The host's view of the core, besides instructions and events. Counters that the profile lacks read as 0.

    Members
    -------
    requests, responses
        Register accesses; a read is answered in order, a write is not answered.
    units_busy, running, faulted, waiting
        For the STATUS register; cycles are counted while ``running``.
    windows
        See :class:`~openmxu.rtl.dispatch.check.instruction_check.MemoryWindows`; empty after reset.
    clear_fault, acknowledge
        Set for one cycle when the host writes them to the COMMAND register.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "requests": In(stream.Signature(ManagementRequest)),
                "responses": Out(stream.Signature(64)),
                "units_busy": In(len(UNITS)),
                "running": In(1),
                "faulted": In(1),
                "waiting": In(1),
                "windows": Out(MemoryWindows(config)),
                "clear_fault": Out(1),
                "acknowledge": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request = self.requests.p
        taken, write = Signal(), Signal()
        is_command = Signal()
        cycles = Signal(self._config.features.counter_width)
        m.d.comb += [
            self.requests.ready.eq(~self.responses.valid | self.responses.ready),
            taken.eq(self.requests.valid & self.requests.ready),
            write.eq(taken & request.write),
            is_command.eq(write & (request.address == Address.COMMAND)),
            self.clear_fault.eq(is_command & request.data[Command.CLEAR_FAULT]),
            self.acknowledge.eq(is_command & request.data[Command.ACKNOWLEDGE]),
        ]
        m.d.sync += cycles.eq(cycles + self.running)
        with m.If(is_command & request.data[Command.CLEAR_COUNTERS]):
            m.d.sync += cycles.eq(0)

        windows: dict[int, Value] = {
            Address.HOST_BASE: self.windows.host_base,
            Address.HOST_LIMIT: self.windows.host_limit,
            Address.WEIGHT_BASE: self.windows.weight_base,
            Address.WEIGHT_LIMIT: self.windows.weight_limit,
        }
        for address, register in windows.items():
            with m.If(write & (request.address == address)):
                m.d.sync += register.eq(request.data)

        flags = (self.running, self.faulted, self.waiting)
        registers: dict[int, Value] = {
            Address.IDENTIFICATION: Const(IDENTIFICATION, 64),
            Address.STATUS: Cat(*flags, Const(0, STATUS_UNITS_OFFSET - len(flags)), self.units_busy),
            Address.COUNTERS + Counter.CYCLES: cycles,
            **windows,
        }
        with m.If(self.requests.ready):
            m.d.sync += self.responses.valid.eq(self.requests.valid & ~request.write)
        with m.If(taken):
            m.d.sync += self.responses.payload.eq(0)
            with m.Switch(request.address):
                for address, register in registers.items():
                    with m.Case(address):
                        m.d.sync += self.responses.payload.eq(register)
        return m
