"""Unified buffer of the lite profile: one access in a cycle, and no registers behind the memories."""

from amaranth.hdl import Array, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from openmxu.arch.config import Config, ceil_log2
from openmxu.rtl.buffer.unified_buffer import ReadPortSignature, WritePortSignature, row_layout
from openmxu.rtl.buffer.unified_buffer_bank import UnifiedBufferBank
from openmxu.rtl.fpga.ice40_bank import Ice40Bank
from openmxu.rtl.fpga.target import Family, Target

__all__ = ["LiteUnifiedBuffer"]


class LiteUnifiedBuffer(wiring.Component):
    """:class:`~openmxu.rtl.buffer.unified_buffer.UnifiedBuffer` that serves one access a cycle, writes first.

    One instruction works at a time, so that ports seldom meet. Rows lie in the same places.

    Parameters
    ----------
    readers, writers
        Names of the ports, highest priority first.

    Members
    -------
    read_<name>, write_<name>
        One for each reader and each writer, see :class:`~openmxu.rtl.buffer.unified_buffer.ReadPortSignature`, with the
        latency of this buffer, and :class:`~openmxu.rtl.buffer.unified_buffer.WritePortSignature`.
    """

    read_latency = 1
    """Cycles from a request taken to its response, which is what the memory puts out."""

    def __init__(self, config: Config, *, readers: tuple[str, ...], writers: tuple[str, ...]) -> None:
        self._config = config
        self._readers = readers
        self._writers = writers
        super().__init__(
            {f"read_{name}": In(ReadPortSignature(config)) for name in readers}
            | {f"write_{name}": In(WritePortSignature(config)) for name in writers}
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        on_ice40 = Target.of(platform).family is Family.ICE40 and Ice40Bank.fits(config)
        banks = [(Ice40Bank if on_ice40 else UnifiedBufferBank)(config) for _ in range(config.unified_buffer_banks)]
        writers = [getattr(self, f"write_{name}").request for name in self._writers]
        readers = [getattr(self, f"read_{name}") for name in self._readers]

        address = Signal(config.unified_buffer_address_width)
        row = Signal(row_layout(config))
        taken = Const(0)
        for writer in writers:
            m.d.comb += writer.ready.eq(~taken)
            taken = taken | writer.valid
        writes = taken
        for reader in readers:
            m.d.comb += reader.request.ready.eq(~taken)
            taken = taken | reader.request.valid
        for reader in reversed(readers):
            with m.If(reader.request.valid):
                m.d.comb += address.eq(reader.request.payload)
        for writer in reversed(writers):
            with m.If(writer.valid):
                m.d.comb += [address.eq(writer.p.address), row.eq(writer.p.row)]

        select_width = ceil_log2(config.unified_buffer_banks)
        select = Signal(max(1, select_width), reset_less=True)
        m.d.sync += select.eq(address[:select_width] if select_width else 0)
        for index, bank in enumerate(banks):
            m.submodules[f"bank_{index}"] = bank
            here = address[:select_width] == index if select_width else Const(1)
            m.d.comb += [
                bank.write_enable.eq(writes & here),
                bank.write_address.eq(address[select_width:]),
                bank.write_data.eq(row),
                bank.read_enable.eq(~writes & here),
                bank.read_address.eq(address[select_width:]),
            ]
        read_data = Array(bank.read_data for bank in banks)[select]
        for name, reader in zip(self._readers, readers, strict=True):
            granted = Signal(name=f"granted_{name}")
            m.d.sync += granted.eq(reader.request.valid & reader.request.ready)
            m.d.comb += [reader.response.valid.eq(granted), reader.response.payload.eq(read_data)]
        return m
