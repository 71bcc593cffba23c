"""What every shell holds: the core with its registers, its program ring, its events and the first error of a memory."""

from amaranth.hdl import Cat, Const, DomainRenamer, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.events import EventKind
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import WORD_BYTES
from openmxu.arch.registers import ADDRESS_WIDTH, OFFSET_ALIGNMENT, Interrupt, ShellKind
from openmxu.rtl.common.interfaces import ReadPortSignature, WritePortSignature
from openmxu.rtl.cores import core_for
from openmxu.rtl.shell.bus_errors import HOST_CLIENTS, WEIGHT_CLIENTS, BusErrors
from openmxu.rtl.shell.event_queue import EventQueue
from openmxu.rtl.shell.interfaces import REGISTER_WIDTH, access_layout, read_error_layout, write_error_layout
from openmxu.rtl.shell.program_fetcher import ProgramFetcher
from openmxu.rtl.shell.register_file import RegisterFile
from openmxu.rtl.shell.small_program_fetcher import SmallProgramFetcher
from openmxu.rtl.shell.small_register_file import SmallRegisterFile
from openmxu.rtl.shell.watchdog import Watchdog

__all__ = ["CORE_DOMAIN", "ShellCore"]

CORE_DOMAIN = "core"
"""The clock domain of what a shell resets by itself; see :class:`~openmxu.rtl.shell.clocked.Clocked`."""

_GRAIN = 1 << 16
"""Of the watchdog of a core with few logic cells, in cycles."""


class ShellCore(wiring.Component):
    """A core that is driven through the registers of :mod:`openmxu.arch.registers`, wherever accesses come from and
    memories are.

    An error of a memory stops dispatch; instructions that have begun end, with the data that came. So does a watchdog,
    when nothing goes on for as many cycles as the TIME_LIMIT register says.

    The core is in a clock domain of its own, with the clock of ``sync``: its reset is one register, which a reset of
    ``sync`` sets. Were it reset by both, thousands of flip-flops all over an FPGA would wait for the gate between them.

    Parameters
    ----------
    config
        Sizes of the core.
    kind
        What the SHELL register tells.

    Members
    -------
    requests, responses
        Accesses of registers; reads are answered.
    program, host_read, host_write, weights
        Memory ports.
    host_offset, weight_offset
        To be added to the addresses of data and of weights, not to those of programs.
    host_read_errors, host_write_errors, weight_errors
        Accesses that memories have answered with an error.
    resets, next_resets
        The core is in reset: all that is under way between ports and memories shall end without them. Whether it will
        be in the next cycle, for registers beside those who are far from the core.
    idle
        Nothing is; the reset ends.
    interrupt
        Set while there is an interrupt that is enabled.
    running, faulted
        Work is under way; it has stopped with a fault. Out of registers, for LEDs.
    """

    def __init__(self, config: Config, kind: ShellKind) -> None:
        self._config = config
        self._kind = kind
        host = (config.host_address_width, config.host_data_bytes)
        weights = (config.weight_address_width, config.weight_data_bytes)

        def errors(layout: object) -> stream.Signature:
            return stream.Signature(layout, always_ready=True)

        super().__init__(
            {
                "requests": In(stream.Signature(access_layout(ADDRESS_WIDTH))),
                "responses": Out(stream.Signature(REGISTER_WIDTH)),
                "program": Out(ReadPortSignature(*host)),
                "host_read": Out(ReadPortSignature(*host)),
                "host_write": Out(WritePortSignature(*host)),
                "weights": Out(ReadPortSignature(*weights)),
                "host_offset": Out(config.host_address_width),
                "weight_offset": Out(config.weight_address_width),
                "host_read_errors": In(errors(read_error_layout(config.host_address_width, len(HOST_CLIENTS)))),
                "host_write_errors": In(errors(write_error_layout(config.host_address_width))),
                "weight_errors": In(errors(read_error_layout(config.weight_address_width, len(WEIGHT_CLIENTS)))),
                "resets": Out(1, init=1),
                "next_resets": Out(1),
                "idle": In(1),
                "interrupt": Out(1),
                "running": Out(1),
                "faulted": Out(1),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        core = core_for(config)
        in_core_domain = DomainRenamer(CORE_DOMAIN)
        self._make_units()
        m.submodules.registers = registers = self._registers
        m.submodules.core = in_core_domain(core)
        m.submodules.fetcher = in_core_domain(self._fetcher)
        m.submodules.events = in_core_domain(self._events)
        m.submodules.errors = in_core_domain(self._errors)
        m.submodules.watchdog = in_core_domain(self._watchdog)

        connect(m, flipped(self.requests), registers.requests)
        connect(m, registers.responses, flipped(self.responses))
        connect(m, registers.management, core.management)
        connect(m, core.management_response, registers.management_response)
        connect(m, self._fetcher.instructions, core.instructions)
        connect(m, core.events, self._events.events)
        connect(m, self._fetcher.memory, flipped(self.program))
        connect(m, core.host_read, flipped(self.host_read))
        connect(m, core.host_write, flipped(self.host_write))
        connect(m, core.weights, flipped(self.weights))
        connect(m, flipped(self.host_read_errors), self._errors.host_reads)
        connect(m, flipped(self.host_write_errors), self._errors.host_writes)
        connect(m, flipped(self.weight_errors), self._errors.weights)
        offset = Const(0, ceil_log2(OFFSET_ALIGNMENT))
        m.d.comb += [
            self.host_offset.eq(Cat(offset, registers.host_offset)),
            self.weight_offset.eq(Cat(offset, registers.weight_offset)),
            registers.core_resets.eq(self.resets),
            ResetSignal(CORE_DOMAIN).eq(self.resets),
        ]
        self._reset(m)
        self._control_ring(m)
        self._watch(m, core)
        self._report(m, core)
        return m

    def _make_units(self) -> None:
        """The smallest ones that do what the configuration asks for."""
        config = self.config
        host = (config.host_address_width, config.host_data_bytes)
        is_small = config.features.is_sequential
        fits = is_small and SmallRegisterFile.fits(config)
        self._registers = (SmallRegisterFile if fits else RegisterFile)(config, self._kind)
        if is_small and config.host_data_bytes <= WORD_BYTES:
            self._fetcher, self._events = SmallProgramFetcher(*host), EventQueue(0)
        else:
            self._fetcher, self._events = ProgramFetcher(*host), EventQueue()
        self._errors = BusErrors(config, is_small=is_small)
        self._watchdog = Watchdog(_GRAIN if is_small else 1)

    def _reset(self, m: Module) -> None:
        """Hold the core in reset until nothing is on its way from or to memory."""
        # What was taken in the first cycle shows in the second, and in the register in the third.
        settled = Signal(3)
        idle = Signal()
        # A cycle later than it may be, because all that is in reset waits for it.
        begins = Signal()
        m.d.sync += [
            begins.eq(self._registers.command.reset),
            idle.eq(self.idle),
            settled.eq(Mux(begins, 0, Cat(1, settled))),
            self.resets.eq(self.next_resets),
        ]
        m.d.comb += self.next_resets.eq(begins | (self.resets & ~(settled[-1] & idle)))

    def _control_ring(self, m: Module) -> None:
        registers, fetcher = self._registers, self._fetcher
        m.d.comb += [
            fetcher.enable.eq(registers.control.enable),
            fetcher.base.eq(registers.ring_base),
            fetcher.size.eq(registers.ring_size),
            fetcher.head.eq(registers.ring_head),
            registers.ring_tail.eq(fetcher.tail),
        ]
        # A cycle later than it may be: these go far, and accesses are further apart.
        m.d.sync += [
            fetcher.hold.eq(self._errors.pending | self._watchdog.expired),
            registers.ring_busy.eq(registers.control.enable | fetcher.fetching),
        ]

    def _watch(self, m: Module, core: wiring.Component) -> None:
        """Tell the watchdog what goes on. What waits for the host is not the device's fault."""
        transfers = (
            *(core.instructions, self.program.data),
            *(core.host_read.data, core.host_write.data, core.host_write.done, core.weights.data),
        )
        # In registers, because ports are far from each other. A cycle more or less is nothing to the host.
        moved = Signal(len(transfers))
        m.d.sync += moved.eq(Cat(port.valid & port.ready for port in transfers))
        m.d.comb += [
            self._watchdog.limit.eq(self._registers.time_limit),
            self._watchdog.works.eq(core.busy | self._fetcher.fetching),
            self._watchdog.goes_on.eq(
                moved.any() | core.finished | core.waiting | (core.events.valid & ~core.events.ready)
            ),
        ]

    def _report(self, m: Module, core: wiring.Component) -> None:
        """Status, events, errors and interrupts."""
        registers, events, errors = self._registers, self._events, self._errors
        expired = self._watchdog.expired
        ring_empty = Signal()
        was_empty = Signal(init=1)
        was_pending = Signal()
        had_expired = Signal()
        reached = Signal(32)
        m.d.sync += [was_empty.eq(ring_empty), was_pending.eq(errors.pending), had_expired.eq(expired)]
        has_stopped = Signal()
        m.d.sync += has_stopped.eq(errors.pending | expired)
        with m.If(~has_stopped):
            m.d.sync += reached.eq(core.index)
        # In registers: what the host reads later goes far.
        with m.If(has_stopped):
            m.d.sync += [
                registers.fault.code.eq(Mux(was_pending, FaultCode.BUS_ERROR, FaultCode.TIME_OUT)),
                registers.fault_index.eq(reached),
            ]
        with m.Else():
            m.d.sync += [registers.fault.code.eq(events.fault), registers.fault_index.eq(events.fault_index)]
        m.d.sync += [
            self.running.eq(core.busy | self._fetcher.fetching),
            self.faulted.eq(Value.cast(registers.fault.code).any()),
        ]
        m.d.comb += [
            ring_empty.eq(self._fetcher.tail == registers.ring_head),
            registers.status.resetting.eq(self.resets),
            registers.status.bus_error.eq(errors.pending),
            registers.status.time_out.eq(expired),
            registers.status.fetching.eq(self._fetcher.fetching),
            registers.status.ring_empty.eq(ring_empty),
            registers.status.interrupt.eq(self.interrupt),
            registers.status.events.eq(events.level),
            registers.event.kind.eq(events.first.kind),
            registers.event.fault.eq(events.first.fault),
            registers.event.valid.eq(events.valid),
            registers.event_tag.eq(events.first.tag),
            registers.event_index.eq(events.first.index),
            events.pop.eq(registers.command.pop_event),
            registers.bus_error.pending.eq(errors.pending),
            registers.bus_error.port.eq(errors.first.port),
            registers.bus_error.response.eq(errors.first.resp),
            registers.bus_error_address.eq(errors.first.addr),
        ]
        happens = Value.cast(registers.interrupt_status_set)
        m.d.comb += [happens[Interrupt[kind.name]].eq(events.happened[kind]) for kind in EventKind]
        m.d.comb += [
            happens[Interrupt.BUS_ERROR].eq(errors.pending & ~was_pending),
            happens[Interrupt.RING_EMPTY].eq(ring_empty & ~was_empty & registers.control.enable),
            happens[Interrupt.TIME_OUT].eq(expired & ~had_expired),
        ]
        pending = Value.cast(registers.interrupt_status) & Value.cast(registers.interrupt_enable)
        m.d.sync += self.interrupt.eq(pending.any())
