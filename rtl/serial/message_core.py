"""Message core: a core whose registers and memories are at the other end of a stream of messages."""

from amaranth.hdl import Cat, Elaboratable, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config
from openmxu.arch.registers import ADDRESS_WIDTH, BusPort, ShellKind
from openmxu.arch.serial import MessageKind
from openmxu.rtl.serial.memory_reader import MemoryReader
from openmxu.rtl.serial.memory_writer import MemoryWriter
from openmxu.rtl.serial.message_arbiter import MessageArbiter
from openmxu.rtl.serial.message_router import MessageRouter
from openmxu.rtl.serial.messages import byte_stream, message_layout
from openmxu.rtl.serial.register_port import RegisterPort
from openmxu.rtl.serial.shared_reader import SharedReader
from openmxu.rtl.serial.short_message import ShortMessage
from openmxu.rtl.shell.bus_errors import HOST_CLIENTS
from openmxu.rtl.shell.shell_core import ShellCore

__all__ = ["MessageCore"]

_READS = {
    "program": (MessageKind.READ_PROGRAM, MessageKind.PROGRAM_DATA),
    "host_read": (MessageKind.READ_HOST, MessageKind.HOST_DATA),
    "weights": (MessageKind.READ_WEIGHTS, MessageKind.WEIGHT_DATA),
}
"""The kinds of request and reply of each read port, in the order of their priority."""

_RECEIVERS = {
    "registers": (MessageKind.READ_REGISTER, MessageKind.WRITE_REGISTER),
    "host_write": (MessageKind.HOST_WRITTEN,),
}
_SENDERS = ("registers", "interrupt")


class MessageCore(wiring.Component):
    """Each of the four memory ports has at most one message in flight; a message is taken without waiting for another.

    Members
    -------
    incoming, outgoing
        Messages from the computer and to it.
    running, faulted
        See :class:`~openmxu.rtl.shell.shell_core.ShellCore`.
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
        m.submodules.host_writer = host_writer = MemoryWriter(*host)
        if config.features.is_sequential and host == weights:
            answers = {"reads": tuple(answer for _, answer in _READS.values())}
            senders: tuple[str, ...] = ("host_write", "reads")
        else:
            answers = {name: (answer,) for name, (_, answer) in _READS.items()}
            senders = ("program", "host_write", "host_read", "weights")
        m.submodules.router = router = MessageRouter(_RECEIVERS | answers)
        m.submodules.arbiter = arbiter = MessageArbiter((*_SENDERS, *senders))
        connect(m, flipped(self.incoming), router.input)
        connect(m, arbiter.output, flipped(self.outgoing))

        connect(m, router.output_registers, registers.messages)
        connect(m, registers.answers, arbiter.input_registers)
        connect(m, registers.requests, core.requests)
        connect(m, core.responses, registers.responses)
        connect(m, core.host_write, host_writer.port)
        connect(m, host_writer.messages, arbiter.input_host_write)
        connect(m, router.output_host_write, host_writer.replies)

        offsets = {"program": 0, "host_read": core.host_offset, "weights": core.weight_offset}
        if "reads" in answers:
            m.submodules.reader = reader = SharedReader(
                *host, {name: question for name, (question, _) in _READS.items()}
            )
            connect(m, reader.requests, arbiter.input_reads)
            connect(m, router.output_reads, reader.replies)
            for name, offset in offsets.items():
                connect(m, getattr(core, name), getattr(reader, f"port_{name}"))
                m.d.comb += getattr(reader, f"offset_{name}").eq(offset)
            errors = {name: getattr(reader, f"errors_{name}") for name in _READS}
            units: tuple[Elaboratable, ...] = (reader, host_writer)
        else:
            readers = {}
            for name, (question, _) in _READS.items():
                readers[name] = reader = MemoryReader(*(weights if name == "weights" else host), question)
                m.submodules[f"{name}_reader"] = reader
                connect(m, getattr(core, name), reader.port)
                connect(m, reader.requests, getattr(arbiter, f"input_{name}"))
                connect(m, getattr(router, f"output_{name}"), reader.replies)
                m.d.comb += reader.offset.eq(offsets[name])
            errors = {name: reader.errors for name, reader in readers.items()}
            units = (*readers.values(), host_writer)

        m.d.comb += [unit.flush.eq(core.resets) for unit in units]
        m.d.comb += [
            host_writer.offset.eq(core.host_offset),
            core.idle.eq(Cat(unit.idle for unit in units).all()),
            self.running.eq(core.running),
            self.faulted.eq(core.faulted),
        ]
        self._report_errors(m, core, errors | {"host_write": host_writer.errors})
        self._send_interrupt(m, core, arbiter)
        return m

    def _report_errors(self, m: Module, core: ShellCore, errors: dict[str, stream.Interface]) -> None:
        """Report errors to the core. Messages come one after the other, so that no two errors come at once."""
        clients = list(HOST_CLIENTS.values())
        for name, port in (("program", BusPort.PROGRAM), ("host_read", BusPort.HOST_READ)):
            with m.If(errors[name].valid):
                m.d.comb += [
                    core.host_read_errors.valid.eq(1),
                    core.host_read_errors.p.client.eq(clients.index(port)),
                    core.host_read_errors.p.resp.eq(errors[name].p.resp),
                    core.host_read_errors.p.addr.eq(errors[name].p.addr),
                ]
        for error, target in ((errors["host_write"], core.host_write_errors), (errors["weights"], core.weight_errors)):
            m.d.comb += [target.valid.eq(error.valid), target.p.resp.eq(error.p.resp), target.p.addr.eq(error.p.addr)]

    def _send_interrupt(self, m: Module, core: ShellCore, arbiter: MessageArbiter) -> None:
        """Send a message whenever the interrupt is set."""
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
