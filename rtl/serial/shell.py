"""The serial shell: registers and memories at the other end of a byte stream."""

from amaranth.hdl import Module, ResetInserter
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config
from openmxu.rtl.serial.link.link import Link
from openmxu.rtl.serial.message_core import MessageCore

__all__ = ["Shell"]


class Shell(wiring.Component):
    """A core that a computer drives by messages, and whose memories are the computer's.

    When the computer restarts the link, all is as after power-on, except for the contents of the core's memories.

    Parameters
    ----------
    config
        Sizes of the core.
    retransmit_cycles
        Cycles until a message without answer is sent again: more than a message and its answer take on the wire.

    Members
    -------
    rx, tx
        Bytes from the computer and to it.
    running, faulted
        Work is in progress; it has stopped with a fault.
    """

    def __init__(self, config: Config, retransmit_cycles: int) -> None:
        self._config = config
        self._retransmit_cycles = retransmit_cycles
        super().__init__(
            {
                "rx": In(stream.Signature(8, always_ready=True)),
                "tx": Out(stream.Signature(8)),
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
        m.submodules.link = link = Link(self._retransmit_cycles)
        core = MessageCore(self.config)
        m.submodules.core = ResetInserter(link.restart)(core)
        connect(m, flipped(self.rx), link.rx)
        connect(m, link.tx, flipped(self.tx))
        connect(m, link.incoming, core.incoming)
        connect(m, core.outgoing, link.outgoing)
        m.d.comb += [self.running.eq(core.running), self.faulted.eq(core.faulted)]
        return m
