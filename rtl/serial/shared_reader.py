"""Shared reader: several read ports of the core, served by messages one request after the other."""

from collections.abc import Mapping

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.serial import MessageKind
from openmxu.rtl.common.interfaces import ReadPortSignature
from openmxu.rtl.serial.memory_reader import MemoryReader
from openmxu.rtl.serial.messages import byte_stream, memory_error_layout

__all__ = ["SharedReader"]


class SharedReader(wiring.Component):
    """A memory reader shared by ports of one shape, highest priority first.

    A port must take all that it has requested, without waiting for the other ports.

    Parameters
    ----------
    address_width, data_bytes
        Widths of all ports.
    kinds
        For each port, the kind of its request messages.

    Members
    -------
    port_<name>, offset_<name>
        Read ports of the core, and the offsets added to their addresses.
    requests, replies
        Messages.
    errors_<name>
        See :class:`~openmxu.rtl.serial.memory_reader.MemoryReader`.
    flush, idle
        As in the memory reader.
    """

    def __init__(self, address_width: int, data_bytes: int, kinds: Mapping[str, MessageKind]) -> None:
        self._kinds = dict(kinds)
        self._reader = MemoryReader(address_width, data_bytes, None)
        errors = stream.Signature(memory_error_layout(address_width), always_ready=True)
        super().__init__(
            {f"port_{name}": In(ReadPortSignature(address_width, data_bytes)) for name in kinds}
            | {f"offset_{name}": In(address_width) for name in kinds}
            | {f"errors_{name}": Out(errors) for name in kinds}
            | {"requests": Out(byte_stream()), "replies": In(byte_stream()), "flush": In(1), "idle": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.reader = reader = self._reader
        connect(m, reader.requests, flipped(self.requests))
        connect(m, flipped(self.replies), reader.replies)
        names = list(self._kinds)
        chosen = Signal(range(len(names)))
        asks = Signal()
        m.d.comb += [reader.flush.eq(self.flush), self.idle.eq(reader.idle)]
        with m.Switch(chosen):
            for number, name in enumerate(names):
                port, errors = getattr(self, f"port_{name}"), getattr(self, f"errors_{name}")
                with m.Case(number):
                    m.d.comb += [
                        reader.kind.eq(self._kinds[name]),
                        reader.offset.eq(getattr(self, f"offset_{name}")),
                        reader.port.request.payload.eq(port.request.payload),
                        reader.port.request.valid.eq(port.request.valid & asks),
                        port.request.ready.eq(reader.port.request.ready & asks),
                        port.data.valid.eq(reader.port.data.valid),
                        reader.port.data.ready.eq(port.data.ready),
                        errors.valid.eq(reader.errors.valid),
                    ]
                m.d.comb += [port.data.payload.eq(reader.port.data.payload), errors.payload.eq(reader.errors.payload)]
        with m.FSM():
            with m.State("CHOOSE"):
                for number, name in reversed(list(enumerate(names))):  # later statements win
                    with m.If(getattr(self, f"port_{name}").request.valid):
                        m.d.sync += chosen.eq(number)
                        m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += asks.eq(1)
                m.next = "SERVE"
            with m.State("SERVE"):
                with m.If(reader.idle):
                    m.next = "CHOOSE"
        return m
