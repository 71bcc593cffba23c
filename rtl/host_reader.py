"""Host reader: rows of host memory to the unified buffer."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config
from openmxu.rtl import unified_buffer
from openmxu.rtl.burst_generator import BurstGenerator
from openmxu.rtl.commands import host_command
from openmxu.rtl.interfaces import ReadPortSignature
from openmxu.rtl.row_unpacker import RowUnpacker
from openmxu.rtl.stream_fifo import StreamFIFO

__all__ = ["HostReader"]


class HostReader(wiring.Component):
    """Executes Read_Host_Memory: asks for bursts ahead and writes the rows that come.

    Members
    -------
    commands
        Transfers; one is taken when it starts.
    memory
        The host read port.
    rows
        Write port of the unified buffer.
    done
        Set for one cycle when the last row of a transfer is written.
    """

    runs_ahead = 4
    """Bursts that may be asked for before their data has come."""

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
        config = self.config
        command = host_command(config)
        rows_width = Signal(command["rows"].shape).shape().width
        destination = data.StructLayout({"address": config.unified_buffer_address_width, "rows": rows_width})

        m.submodules.active = active = StreamFIFO(command, 1)
        m.submodules.bursts = bursts = BurstGenerator(config)
        m.submodules.unpacker = unpacker = RowUnpacker(
            row_bytes=config.size, beat_bytes=config.host_data_bytes, rows_width=rows_width
        )
        m.submodules.runs = runs = StreamFIFO(unpacker.runs.p.shape(), self.runs_ahead)
        m.submodules.destinations = destinations = StreamFIFO(destination, self.runs_ahead)

        # A command goes to the burst generator and to the row writer in the same cycle.
        m.d.comb += [
            active.input.payload.eq(self.commands.payload),
            active.input.valid.eq(self.commands.valid & destinations.input.ready),
            destinations.input.p.address.eq(self.commands.p.unified_buffer),
            destinations.input.p.rows.eq(self.commands.p.rows),
            destinations.input.valid.eq(self.commands.valid & active.input.ready),
            self.commands.ready.eq(active.input.ready & destinations.input.ready),
        ]
        connect(m, active.output, bursts.commands)
        connect(m, bursts.requests, flipped(self.memory.request))
        connect(m, bursts.runs, runs.input)
        connect(m, runs.output, unpacker.runs)
        connect(m, flipped(self.memory.data), unpacker.beats)

        count = Signal(rows_width)
        last = Signal()
        written = Signal()
        m.d.comb += [
            last.eq(count + 1 == destinations.output.p.rows),
            self.rows.request.p.address.eq(destinations.output.p.address + count),
            Value.cast(self.rows.request.p.row).eq(unpacker.rows.payload),
            self.rows.request.valid.eq(unpacker.rows.valid & destinations.output.valid),
            unpacker.rows.ready.eq(self.rows.request.ready & destinations.output.valid),
            written.eq(self.rows.request.valid & self.rows.request.ready),
            destinations.output.ready.eq(written & last),
            self.done.eq(written & last),
        ]
        with m.If(written):
            m.d.sync += count.eq(count + 1)
            with m.If(last):
                m.d.sync += count.eq(0)
        return m
