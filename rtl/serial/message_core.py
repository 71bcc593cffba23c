"""Message core: a core whose registers and memories are at the other end of a stream of messages."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config
from openmxu.arch.registers import ADDRESS_WIDTH, BusPort, ShellKind
from openmxu.arch.serial import MessageKind
from openmxu.rtl.axi.bus_errors import HOST_CLIENTS
from openmxu.rtl.serial.memory_reader import MemoryReader
from openmxu.rtl.serial.memory_writer import MemoryWriter
from openmxu.rtl.serial.message_arbiter import MessageArbiter
from openmxu.rtl.serial.message_router import MessageRouter
from openmxu.rtl.serial.messages import byte_stream, message_layout
from openmxu.rtl.serial.register_port import RegisterPort
from openmxu.rtl.serial.short_message import ShortMessage
from openmxu.rtl.shell_core import ShellCore

__all__ = ["MessageCore"]

_RECEIVERS = {
    "registers": (MessageKind.READ_REGISTER, MessageKind.WRITE_REGISTER),
    "program": (MessageKind.PROGRAM_DATA,),
    "host_read": (MessageKind.HOST_DATA,),
    "host_write": (MessageKind.HOST_WRITTEN,),
    "weights": (MessageKind.WEIGHT_DATA,),
}
_SENDERS = ("registers", "interrupt", "program", "host_write", "host_read", "weights")


class MessageCore(wiring.Component):
    """Each of the four memory ports has a message under way at most; a message is taken without waiting for another.

    Members
    -------
    incoming, outgoing
        Messages from the computer and to it.
    running, faulted
        See :class:`~openmxu.rtl.shell_core.ShellCore`.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {"incoming": In(byte_stream()), "outgoing": Out(byte_stream()), "running": Out(1), "faulted": Out(1)}
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
        m.submodules.core = core = ShellCore(config, ShellKind.SERIAL)
        m.submodules.registers = registers = RegisterPort(ADDRESS_WIDTH)
        m.submodules.program = program = MemoryReader(*host, MessageKind.READ_PROGRAM)
        m.submodules.host_reader = host_reader = MemoryReader(*host, MessageKind.READ_HOST)
        m.submodules.host_writer = host_writer = MemoryWriter(*host)
        m.submodules.weight_reader = weight_reader = MemoryReader(*weights, MessageKind.READ_WEIGHTS)
        m.submodules.router = router = MessageRouter(_RECEIVERS)
        m.submodules.arbiter = arbiter = MessageArbiter(_SENDERS)
        connect(m, flipped(self.incoming), router.input)
        connect(m, arbiter.output, flipped(self.outgoing))

        connect(m, router.output_registers, registers.messages)
        connect(m, registers.answers, arbiter.input_registers)
        connect(m, registers.requests, core.requests)
        connect(m, core.responses, registers.responses)
        for name, port, unit in (
            ("program", core.program, program),
            ("host_read", core.host_read, host_reader),
            ("weights", core.weights, weight_reader),
        ):
            connect(m, port, unit.port)
            connect(m, unit.requests, getattr(arbiter, f"input_{name}"))
            connect(m, getattr(router, f"output_{name}"), unit.replies)
        connect(m, core.host_write, host_writer.port)
        connect(m, host_writer.messages, arbiter.input_host_write)
        connect(m, router.output_host_write, host_writer.replies)

        units = (program, host_reader, host_writer, weight_reader)
        m.d.comb += [unit.flush.eq(core.resets) for unit in units]
        m.d.comb += [
            host_reader.offset.eq(core.host_offset),
            host_writer.offset.eq(core.host_offset),
            weight_reader.offset.eq(core.weight_offset),
            core.idle.eq(Cat(unit.idle for unit in units).all()),
            self.running.eq(core.running),
            self.faulted.eq(core.faulted),
        ]
        self._tell_errors(m, core, program, host_reader, host_writer, weight_reader)
        self._tell_interrupt(m, core, arbiter)
        return m

    def _tell_errors(
        self,
        m: Module,
        core: ShellCore,
        program: MemoryReader,
        host_reader: MemoryReader,
        host_writer: MemoryWriter,
        weight_reader: MemoryReader,
    ) -> None:
        """Pass errors on. Messages come one after the other, so that no two errors come at once."""
        clients = list(HOST_CLIENTS.values())
        for unit, port in ((program, BusPort.PROGRAM), (host_reader, BusPort.HOST_READ)):
            with m.If(unit.errors.valid):
                m.d.comb += [
                    core.host_read_errors.valid.eq(1),
                    core.host_read_errors.p.client.eq(clients.index(port)),
                    core.host_read_errors.p.resp.eq(unit.errors.p.resp),
                    core.host_read_errors.p.addr.eq(unit.errors.p.addr),
                ]
        for unit, errors in ((host_writer, core.host_write_errors), (weight_reader, core.weight_errors)):
            m.d.comb += [
                errors.valid.eq(unit.errors.valid),
                errors.p.resp.eq(unit.errors.p.resp),
                errors.p.addr.eq(unit.errors.p.addr),
            ]

    def _tell_interrupt(self, m: Module, core: ShellCore, arbiter: MessageArbiter) -> None:
        """A message whenever the interrupt is set."""
        m.submodules.interrupt = message = ShortMessage(message_layout(MessageKind.INTERRUPT))
        connect(m, message.output, arbiter.input_interrupt)
        before = Signal()
        due = Signal()
        m.d.sync += before.eq(core.interrupt)
        m.d.comb += [message.input.p.kind.eq(MessageKind.INTERRUPT), message.input.valid.eq(due)]
        with m.If(message.input.ready):
            m.d.sync += due.eq(0)
        with m.If(core.interrupt & ~before):
            m.d.sync += due.eq(1)
