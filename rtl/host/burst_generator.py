"""Burst generator: splits a host transfer into bursts of the memory port."""

from amaranth.hdl import Cat, Const, Module, Mux, Shape, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config, ceil_log2
from openmxu.rtl.common.counting import Countdown
from openmxu.rtl.common.interfaces import burst_layout
from openmxu.rtl.common.run_walker import run_layout
from openmxu.rtl.dispatch.commands import host_command

__all__ = ["BurstGenerator", "burst_of"]


def burst_of(config: Config, host: Value, rows: Value) -> tuple[Value, Value, Value]:
    """The burst of consecutive rows from address ``host`` on: address of its first beat, number of beats, and place of
    the first row within the first beat, which has no bits if a row fills a beat or more."""
    beat_bits = ceil_log2(config.host_data_bytes)
    address = Cat(Const(0, beat_bits), host[beat_bits:])
    if config.size >= config.host_data_bytes:
        return address, rows << ceil_log2(config.size // config.host_data_bytes), Const(0, 0)
    per_beat = config.host_data_bytes // config.size
    lane = host[ceil_log2(config.size) : beat_bits]
    return address, (rows + lane + (per_beat - 1)) >> ceil_log2(per_beat), lane


class BurstGenerator(wiring.Component):
    """Makes one burst of a contiguous transfer, and one for each row of an alternate one; up to one burst per cycle.

    Members
    -------
    commands
        Transfers; a command is taken when the one before has sent all its bursts.
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
                            Shape.cast(command["rows"].shape).width,
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
        command = self.commands.p
        active = Signal()
        address = Signal(self.config.host_address_width, reset_less=True)
        stride = Signal.like(command.stride, reset_less=True)
        rows = Signal.like(command.rows, reset_less=True)
        bursts = Countdown(command.rows.shape(), "bursts")
        request_sent = Signal()
        run_sent = Signal()
        advance = Signal()
        first_beat, beats, lane = burst_of(self.config, address, rows)
        m.d.comb += [
            self.requests.p.address.eq(first_beat),
            self.runs.p.rows.eq(rows),
            self.requests.valid.eq(active & ~request_sent),
            self.runs.valid.eq(active & ~run_sent),
            advance.eq(active & (request_sent | self.requests.ready) & (run_sent | self.runs.ready)),
            self.commands.ready.eq(~active),
        ]
        m.d.comb += [self.runs.p.lane.eq(lane), self.requests.p.beats.eq(beats)]

        with m.If(advance):
            m.d.sync += [request_sent.eq(0), run_sent.eq(0)]
        with m.Else():
            with m.If(self.requests.valid & self.requests.ready):
                m.d.sync += request_sent.eq(1)
            with m.If(self.runs.valid & self.runs.ready):
                m.d.sync += run_sent.eq(1)

        with m.If(self.commands.ready):
            m.d.sync += [
                active.eq(self.commands.valid),
                address.eq(command.host),
                stride.eq(command.stride),
                rows.eq(Mux(command.alternate, 1, command.rows)),
                *bursts.start(Mux(command.alternate, command.rows, 1)),
            ]
        with m.Elif(advance):
            m.d.sync += [active.eq(~bursts.last), address.eq(address + stride), *bursts.step()]
        return m
