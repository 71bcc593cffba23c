"""Bus errors: the first error reply of a memory."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.arch.registers import BusPort
from openmxu.rtl.shell.interfaces import read_error_layout, write_error_layout

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

    Parameters
    ----------
    config
        Widths of addresses.
    is_small
        For cores with few logic cells: the first error is chosen before the register, not behind one for each port.

    Members
    -------
    host_reads, host_writes, weights
        Error replies.
    pending
        There was one, two cycles ago or earlier; one cycle ago with ``is_small``.
    first
        The first one.
    """

    def __init__(self, config: Config, *, is_small: bool = False) -> None:
        self._config = config
        self._is_small = is_small
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
        if self._is_small:
            comes = Signal(bus_error_layout(self._config))
            for source, port in reversed(sources):  # later statements win
                with m.If(source.valid):
                    m.d.comb += [comes.port.eq(port), comes.resp.eq(source.p.resp), comes.addr.eq(source.p.addr)]
                    m.d.sync += self.pending.eq(1)
            with m.If(~self.pending):
                m.d.sync += self.first.eq(comes)
            return m
        # That a beat came with an error is known late: what it would be the error of is kept before that.
        found = Signal(len(sources))
        kept = [Signal(bus_error_layout(self._config), name=f"kept_{index}", reset_less=True) for index in range(3)]
        later = Mux(found[1], kept[1], kept[2])
        m.d.sync += self.pending.eq(found.any())
        m.d.comb += [self.first.eq(Mux(found[0], kept[0], later))]
        with m.If(~found.any()):
            for index, (source, port) in enumerate(sources):
                m.d.sync += [
                    found[index].eq(source.valid),
                    kept[index].port.eq(port),
                    kept[index].resp.eq(source.p.resp),
                    kept[index].addr.eq(source.p.addr),
                ]
        return m
