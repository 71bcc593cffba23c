"""The AXI shell: the core, its registers, its program ring, and its way to memory."""

from amaranth.hdl import Cat, Const, Module, ResetInserter, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.events import EventKind
from openmxu.arch.registers import ADDRESS_WIDTH, OFFSET_ALIGNMENT, Interrupt
from openmxu.rtl.axi.bus_errors import HOST_CLIENTS, WEIGHT_CLIENTS, BusErrors
from openmxu.rtl.axi.channels import LiteSignature, ReadChannelsSignature, WriteChannelsSignature
from openmxu.rtl.axi.event_queue import EventQueue
from openmxu.rtl.axi.lite_subordinate import LiteSubordinate
from openmxu.rtl.axi.program_fetcher import ProgramFetcher
from openmxu.rtl.axi.read_manager import ReadManager
from openmxu.rtl.axi.register_file import RegisterFile
from openmxu.rtl.axi.write_manager import WriteManager
from openmxu.rtl.core import Core

__all__ = ["Shell"]


class Shell(wiring.Component):
    """A core that a host drives through the registers of :mod:`openmxu.arch.registers`, and that fetches programs, data
    and weights by itself.

    An error reply of a memory stops dispatch; instructions that have begun end, with the data that came. A reset of the
    core lets all bursts on their way end as AXI demands, whatever the core was doing.

    Members
    -------
    control
        Registers.
    host_read, host_write
        Host memory.
    weights
        Weight memory.
    interrupt
        Set while there is an interrupt that is enabled.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        host = (config.host_address_width, config.host_data_bytes)
        super().__init__(
            {
                "control": In(LiteSignature(ADDRESS_WIDTH)),
                "host_read": Out(ReadChannelsSignature(*host)),
                "host_write": Out(WriteChannelsSignature(*host)),
                "weights": Out(ReadChannelsSignature(config.weight_address_width, config.weight_data_bytes)),
                "interrupt": Out(1),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        host = (config.host_address_width, config.host_data_bytes)
        weights = (config.weight_address_width, config.weight_data_bytes)
        resets = Signal()
        m.submodules.lite = lite = LiteSubordinate(ADDRESS_WIDTH)
        m.submodules.registers = self._registers = registers = RegisterFile(config)
        m.submodules.host_reader = self._host_reader = ReadManager(*host, clients=tuple(HOST_CLIENTS))
        m.submodules.host_writer = self._host_writer = WriteManager(*host)
        m.submodules.weight_reader = self._weight_reader = ReadManager(*weights, clients=tuple(WEIGHT_CLIENTS))
        self._core = core = Core(config)
        self._fetcher = ProgramFetcher(*host)
        self._events = EventQueue()
        self._errors = BusErrors(config)
        m.submodules.core = ResetInserter(resets)(core)
        m.submodules.fetcher = ResetInserter(resets)(self._fetcher)
        m.submodules.events = ResetInserter(resets)(self._events)
        m.submodules.errors = ResetInserter(resets)(self._errors)

        connect(m, flipped(self.control), lite.bus)
        connect(m, lite.requests, registers.requests)
        connect(m, registers.responses, lite.responses)
        connect(m, registers.management, core.management)
        connect(m, core.management_response, registers.management_response)
        connect(m, self._fetcher.instructions, core.instructions)
        connect(m, core.events, self._events.events)
        connect(m, self._host_reader.bus, flipped(self.host_read))
        connect(m, self._host_writer.bus, flipped(self.host_write))
        connect(m, self._weight_reader.bus, flipped(self.weights))
        connect(m, self._fetcher.memory, self._host_reader.client_program)
        connect(m, core.host_read, self._host_reader.client_data)
        connect(m, core.host_write, self._host_writer.port)
        connect(m, core.weights, self._weight_reader.client_data)
        connect(m, self._host_reader.errors, self._errors.host_reads)
        connect(m, self._host_writer.errors, self._errors.host_writes)
        connect(m, self._weight_reader.errors, self._errors.weights)
        offset = Const(0, ceil_log2(OFFSET_ALIGNMENT))
        m.d.comb += [
            self._host_reader.offset_data.eq(Cat(offset, registers.host_offset)),
            self._host_writer.offset.eq(Cat(offset, registers.host_offset)),
            self._weight_reader.offset_data.eq(Cat(offset, registers.weight_offset)),
            registers.core_resets.eq(resets),
        ]
        self._reset(m, resets)
        self._control_ring(m)
        self._report(m, resets)
        return m

    def _reset(self, m: Module, resets: Signal) -> None:
        """Hold the core in reset until nothing is on its way from or to memory."""
        managers = (self._host_reader, self._host_writer, self._weight_reader)
        settled = Signal(2)  # what was taken in the first cycle shows in the second
        with m.If(self._registers.command.reset):
            m.d.sync += [resets.eq(1), settled.eq(0)]
        with m.Elif(resets):
            m.d.sync += settled.eq(Cat(1, settled))
            with m.If(settled.all() & Cat(manager.idle for manager in managers).all()):
                m.d.sync += resets.eq(0)
        m.d.comb += [manager.flush.eq(resets) for manager in managers]

    def _control_ring(self, m: Module) -> None:
        registers, fetcher = self._registers, self._fetcher
        m.d.comb += [
            fetcher.enable.eq(registers.control.enable),
            fetcher.base.eq(registers.ring_base),
            fetcher.size.eq(registers.ring_size),
            fetcher.head.eq(registers.ring_head),
            fetcher.hold.eq(self._errors.pending),
            registers.ring_tail.eq(fetcher.tail),
            registers.ring_busy.eq(registers.control.enable | fetcher.fetching),
        ]

    def _report(self, m: Module, resets: Signal) -> None:
        """Status, events, errors and interrupts."""
        registers, events, errors = self._registers, self._events, self._errors
        # The core cannot clear its memories yet.
        scrubbing = Signal()
        scrubbed = Signal()
        ring_empty = Signal()
        was_empty = Signal(init=1)
        was_pending = Signal()
        m.d.sync += [was_empty.eq(ring_empty), was_pending.eq(errors.pending)]
        m.d.comb += [
            ring_empty.eq(self._fetcher.tail == registers.ring_head),
            registers.status.resetting.eq(resets),
            registers.status.scrubbing.eq(scrubbing),
            registers.status.bus_error.eq(errors.pending),
            registers.status.fetching.eq(self._fetcher.fetching),
            registers.status.ring_empty.eq(ring_empty),
            registers.status.interrupt.eq(self.interrupt),
            registers.status.events.eq(events.level),
            registers.fault.code.eq(events.fault),
            registers.fault_index.eq(events.fault_index),
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
            happens[Interrupt.SCRUBBED].eq(scrubbed),
        ]
        pending = Value.cast(registers.interrupt_status) & Value.cast(registers.interrupt_enable)
        m.d.sync += self.interrupt.eq(pending.any())
