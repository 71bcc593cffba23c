"""Host reader of the lite profile."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config
from openmxu.rtl.buffer import unified_buffer
from openmxu.rtl.common.interfaces import ReadPortSignature
from openmxu.rtl.dispatch.commands import host_command
from openmxu.rtl.host.row_unpacker import RowUnpacker
from openmxu.rtl.lite.host.bursts import burst_address, burst_beats, first_lane

__all__ = ["LiteHostReader"]


class LiteHostReader(wiring.Component):
    """Executes Read_Host_Memory: one burst, and its rows as they come.

    Members
    -------
    commands
        Taken with the last row.
    memory
        The host read port.
    rows
        Write port of the unified buffer.
    done
        Set for one cycle when the last row is written.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "commands": In(stream.Signature(host_command(config))),
                "memory": Out(ReadPortSignature(config.host_address_width, config.host_data_bytes)),
                "rows": Out(unified_buffer.WritePortSignature(config)),
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
        m.submodules.unpacker = unpacker = RowUnpacker(row_bytes=config.size, beat_bytes=config.host_data_bytes)
        connect(m, flipped(self.memory.data), unpacker.beats)
        requested = Signal()
        index = Signal.like(command.rows)
        m.d.comb += [
            self.memory.request.p.address.eq(burst_address(config, command.host)),
            self.memory.request.p.beats.eq(burst_beats(config, command)),
            self.memory.request.valid.eq(self.commands.valid & ~requested),
            unpacker.places.p.lane.eq(first_lane(config, command.host) + index),
            unpacker.places.p.last.eq(index + 1 == command.rows),
            unpacker.places.valid.eq(requested),
            self.rows.request.p.address.eq(command.unified_buffer + index),
            Value.cast(self.rows.request.p.row).eq(unpacker.rows.payload),
            self.rows.request.valid.eq(unpacker.rows.valid),
            unpacker.rows.ready.eq(self.rows.request.ready),
            self.done.eq(unpacker.places.ready & unpacker.places.p.last),
            self.commands.ready.eq(self.done),
        ]
        with m.If(unpacker.places.ready):
            m.d.sync += index.eq(Mux(self.done, 0, index + 1))
        with m.If(self.done):
            m.d.sync += requested.eq(0)
        with m.Elif(self.memory.request.valid & self.memory.request.ready):
            m.d.sync += requested.eq(1)
        return m
