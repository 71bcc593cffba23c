"""Burst generator: a host transfer becomes bursts of the memory port."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config, ceil_log2
from openmxu.rtl.commands import host_command
from openmxu.rtl.interfaces import burst_layout
from openmxu.rtl.row_unpacker import run_layout

__all__ = ["BurstGenerator"]


class BurstGenerator(wiring.Component):
    """Makes one burst of a contiguous transfer, and one for each row of an alternate one; up to one burst per cycle.

    Members
    -------
    commands
        Transfers; a command is taken with its last burst.
    requests
        The bursts, for the memory port.
    runs
        The rows in each burst, for a packer or unpacker.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        command = host_command(config)
        super().__init__(
            {
                "commands": In(stream.Signature(command)),
                "requests": Out(stream.Signature(burst_layout(config.host_address_width))),
                "runs": Out(
                    stream.Signature(
                        run_layout(
                            Signal(command["rows"].shape).shape().width,
                            ceil_log2(max(1, config.host_data_bytes // config.size)),
                        )
                    )
                ),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size, beat_bytes = self.config.size, self.config.host_data_bytes
        beat_bits = ceil_log2(beat_bytes)

        command = self.commands.p
        offset = Signal(self.config.host_address_width)
        done_rows = Signal.like(command.rows)
        request_sent = Signal()
        run_sent = Signal()

        address = Signal(self.config.host_address_width)
        rows = Signal.like(command.rows)
        last = Signal()
        advance = Signal()
        m.d.comb += [
            address.eq(command.host + offset),
            rows.eq(Mux(command.alternate, 1, command.rows)),
            last.eq(~command.alternate | (done_rows + 1 == command.rows)),
            self.requests.p.address.eq(Cat(Const(0, beat_bits), address[beat_bits:])),
            self.runs.p.rows.eq(rows),
            self.requests.valid.eq(self.commands.valid & ~request_sent),
            self.runs.valid.eq(self.commands.valid & ~run_sent),
            advance.eq(
                self.commands.valid & (request_sent | self.requests.ready) & (run_sent | self.runs.ready)
            ),
            self.commands.ready.eq(advance & last),
        ]
        if size >= beat_bytes:
            m.d.comb += self.requests.p.beats.eq(rows << ceil_log2(size // beat_bytes))
        else:
            per_beat = beat_bytes // size
            lane = address[ceil_log2(size) : beat_bits]
            m.d.comb += [
                self.runs.p.lane.eq(lane),
                self.requests.p.beats.eq((rows + lane + (per_beat - 1)) >> ceil_log2(per_beat)),
            ]

        with m.If(advance):
            m.d.sync += [request_sent.eq(0), run_sent.eq(0)]
            with m.If(last):
                m.d.sync += [offset.eq(0), done_rows.eq(0)]
            with m.Else():
                m.d.sync += [offset.eq(offset + command.stride), done_rows.eq(done_rows + 1)]
        with m.Else():
            with m.If(self.requests.valid & self.requests.ready):
                m.d.sync += request_sent.eq(1)
            with m.If(self.runs.valid & self.runs.ready):
                m.d.sync += run_sent.eq(1)
        return m
