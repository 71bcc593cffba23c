"""Bus errors: the first error reply of a memory."""

from amaranth.hdl import Module, Mux
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.arch.registers import BusPort
from openmxu.rtl.axi.read_manager import read_error_layout
from openmxu.rtl.axi.write_manager import write_error_layout

__all__ = ["HOST_CLIENTS", "WEIGHT_CLIENTS", "BusErrors", "bus_error_layout"]

HOST_CLIENTS = {"program": BusPort.PROGRAM, "data": BusPort.HOST_READ}
"""Who reads host memory, in the order of their priority."""

WEIGHT_CLIENTS = {"data": BusPort.WEIGHTS}
"""Who reads weight memory."""


def bus_error_layout(config: Config) -> data.StructLayout:
    """Who accessed memory, the reply, and the address of the burst."""
    width = max(config.host_address_width, config.weight_address_width)
    return data.StructLayout({"port": BusPort, "resp": 2, "addr": width})


class BusErrors(wiring.Component):
    """Keeps the first error until it is reset. Of several at once, host reads count as first, then host writes.

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
        with m.If(~self.pending):
            # Later statements win.
            for source, port in (
                (self.weights, BusPort.WEIGHTS),
                (self.host_writes, BusPort.HOST_WRITE),
                (self.host_reads, None),
            ):
                with m.If(source.valid):
                    m.d.sync += [
                        self.pending.eq(1),
                        self.first.resp.eq(source.p.resp),
                        self.first.addr.eq(source.p.addr),
                    ]
                    if port is not None:
                        m.d.sync += self.first.port.eq(port)
            with m.If(self.host_reads.valid):
                program, data = HOST_CLIENTS.values()
                m.d.sync += self.first.port.eq(Mux(self.host_reads.p.client, data, program))
        return m
