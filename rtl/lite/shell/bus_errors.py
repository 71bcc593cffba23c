"""Bus errors of the lite profile: the first error reply of a memory."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.arch.registers import BusPort
from openmxu.rtl.shell.bus_errors import HOST_CLIENTS, WEIGHT_CLIENTS, bus_error_layout
from openmxu.rtl.shell.interfaces import read_error_layout, write_error_layout

__all__ = ["LiteBusErrors"]


class LiteBusErrors(wiring.Component):
    """:class:`~openmxu.rtl.shell.bus_errors.BusErrors` with registers for one error.

    Members
    -------
    host_reads, host_writes, weights
        Error replies.
    pending
        There was one.
    first
        The first one.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        host, weights = config.host_address_width, config.weight_address_width
        read_error = read_error_layout(host, len(HOST_CLIENTS))
        weight_error = read_error_layout(weights, len(WEIGHT_CLIENTS))
        super().__init__(
            {
                "host_reads": In(stream.Signature(read_error, always_ready=True)),
                "host_writes": In(stream.Signature(write_error_layout(host), always_ready=True)),
                "weights": In(stream.Signature(weight_error, always_ready=True)),
                "pending": Out(1),
                "first": Out(bus_error_layout(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        program, data = HOST_CLIENTS.values()
        sources = (
            (self.host_reads, Mux(self.host_reads.p.client, data, program)),
            (self.host_writes, BusPort.HOST_WRITE),
            (self.weights, BusPort.WEIGHTS),
        )
        comes = Signal(bus_error_layout(self._config))
        for source, port in reversed(sources):  # later statements win
            with m.If(source.valid):
                m.d.comb += [comes.port.eq(port), comes.resp.eq(source.p.resp), comes.addr.eq(source.p.addr)]
                m.d.sync += self.pending.eq(1)
        with m.If(~self.pending):
            m.d.sync += self.first.eq(comes)
        return m
