"""Host writer of the lite profile."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config
from openmxu.rtl.buffer import unified_buffer
from openmxu.rtl.common.interfaces import WritePortSignature
from openmxu.rtl.dispatch.commands import host_command
from openmxu.rtl.host.row_packer import RowPacker
from openmxu.rtl.lite.host.bursts import burst_address, burst_beats, first_lane

__all__ = ["LiteHostWriter"]


class LiteHostWriter(wiring.Component):
    """Executes Write_Host_Memory: one burst, row after row.

    Members
    -------
    commands
        Taken when the memory has acknowledged the burst.
    rows
        Read port of the unified buffer.
    memory
        The host write port.
    done
        Set for one cycle when the memory has acknowledged.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "commands": In(stream.Signature(host_command(config))),
                "rows": Out(unified_buffer.ReadPortSignature(config)),
                "memory": Out(WritePortSignature(config.host_address_width, config.host_data_bytes)),
                "done": Out(1),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config, command = self.config, self.commands.p
        m.submodules.packer = packer = RowPacker(row_bytes=config.size, beat_bytes=config.host_data_bytes)
        connect(m, packer.beats, flipped(self.memory.data))
        held = Signal(8 * config.size, reset_less=True)
        requested = Signal()
        index = Signal.like(command.rows)
        m.d.comb += [
            self.memory.request.p.address.eq(burst_address(config, command.host)),
            self.memory.request.p.beats.eq(burst_beats(config, command)),
            self.memory.request.valid.eq(self.commands.valid & ~requested),
            packer.places.p.lane.eq(first_lane(config, command.host) + index),
            packer.places.p.last.eq(index + 1 == command.rows),
            packer.rows.payload.eq(held),
            self.rows.request.payload.eq(command.unified_buffer + index),
        ]
        with m.If(self.memory.request.valid & self.memory.request.ready):
            m.d.sync += requested.eq(1)
        with m.FSM():
            with m.State("READ"):
                m.d.comb += self.rows.request.valid.eq(self.commands.valid)
                with m.If(self.commands.valid & self.rows.request.ready):
                    m.next = "HOLD"
            with m.State("HOLD"):
                m.d.sync += held.eq(Value.cast(self.rows.response.payload))
                with m.If(self.rows.response.valid):
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += [packer.places.valid.eq(1), packer.rows.valid.eq(1)]
                with m.If(packer.places.ready):
                    m.d.sync += index.eq(index + 1)
                    m.next = "READ"
                    with m.If(packer.places.p.last):
                        m.d.sync += index.eq(0)
                        m.next = "ACKNOWLEDGE"
            with m.State("ACKNOWLEDGE"):
                m.d.comb += [
                    self.memory.done.ready.eq(1),
                    self.done.eq(self.memory.done.valid),
                    self.commands.ready.eq(self.done),
                ]
                with m.If(self.done):
                    m.d.sync += requested.eq(0)
                    m.next = "READ"
        return m
