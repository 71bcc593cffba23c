"""Unified buffer: rows of S bytes in interleaved banks of block RAM, shared by arbitration."""

from amaranth.hdl import Array, Cat, Const, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config, ceil_log2
from openmxu.rtl.buffer.unified_buffer_bank import UnifiedBufferBank
from openmxu.rtl.fpga.ice40_bank import Ice40Bank
from openmxu.rtl.fpga.target import Family, Target

__all__ = ["ReadPortSignature", "UnifiedBuffer", "WritePortSignature", "row_layout"]

_COLUMN_BYTES = 8
"""Largest number of bytes of a row in one memory of an ECP5."""


def row_layout(config: Config) -> data.ArrayLayout:
    """A row of the unified buffer: S bytes."""
    return data.ArrayLayout(8, config.size)


class ReadPortSignature(wiring.Signature):
    """A reader's port, seen from the reader.

    Members
    -------
    request
        Row addresses.
    response
        The rows in the order of the requests, each as many cycles after its request was taken as the buffer's latency.
        The reader must take them: it requests only what it has room for.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "request": Out(stream.Signature(config.unified_buffer_address_width)),
                "response": In(stream.Signature(row_layout(config), always_ready=True)),
            }
        )


class WritePortSignature(wiring.Signature):
    """A writer's port, seen from the writer: a stream of addresses and rows. Later reads return a row once taken.

    Parameters
    ----------
    always_ready
        Every row is taken in the cycle in which it comes.
    """

    def __init__(self, config: Config, *, always_ready: bool = False) -> None:
        payload = data.StructLayout({"address": config.unified_buffer_address_width, "row": row_layout(config)})
        super().__init__({"request": Out(stream.Signature(payload, always_ready=always_ready))})


class UnifiedBuffer(wiring.Component):
    """Rows interleaved over banks: row r lies in bank r mod ``unified_buffer_banks``.

    Every bank serves one read and one write per cycle; banks with a single port serve one access per cycle all
    together, writes first. The first reader and the first writer have priority, and the first writer never waits; two
    streams through consecutive rows conflict once at most and then use different banks.

    Parameters
    ----------
    readers, writers
        Names of the ports, highest priority first.
    is_small
        For cores with few logic cells: all banks together serve one access per cycle, however many ports they have, and
        only read data is registered: ``small_read_latency`` in place of ``read_latency``.

    Members
    -------
    read_<name>, write_<name>
        One for each reader and each writer, see :class:`ReadPortSignature` and :class:`WritePortSignature`.
    """

    read_latency = 4
    """Cycles from a request taken to its response; the inputs and outputs of the block RAM are registered.

    Arbitration takes much of a cycle, block RAM is slow, and both are far away from the units on the chip."""

    small_read_latency = 1

    def __init__(
        self, config: Config, *, readers: tuple[str, ...], writers: tuple[str, ...], is_small: bool = False
    ) -> None:
        self._config = config
        self._is_small = is_small
        self._readers = readers
        self._writers = writers
        super().__init__(
            {f"read_{name}": In(ReadPortSignature(config)) for name in readers}
            | {
                f"write_{name}": In(WritePortSignature(config, always_ready=index == 0))
                for index, name in enumerate(writers)
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        banks = [self._bank(Target.of(platform)) for _ in range(config.unified_buffer_banks)]
        for index, bank in enumerate(banks):
            m.submodules[f"bank_{index}"] = bank
        select_width = ceil_log2(config.unified_buffer_banks)
        if self._is_small or banks[0].is_single_ported:
            self._share(m, banks, select_width)
            return m

        writers = [getattr(self, f"write_{name}").request for name in self._writers]
        for index, bank in enumerate(banks):
            place = Signal.like(bank.write_address, name=f"write_place_{index}", reset_less=True)
            row = Signal(row_layout(config), name=f"write_row_{index}", reset_less=True)
            m.d.comb += [bank.write_address.eq(place), bank.write_data.eq(row)]
            m.d.sync += [place.eq(writers[-1].p.address[select_width:]), row.eq(writers[-1].p.row)]
            comes = [writer.valid & (writer.p.address[:select_width] == index) for writer in writers]
            m.d.sync += bank.write_enable.eq(Cat(comes).any())
            for writer, wants in reversed(list(zip(writers[:-1], comes, strict=False))):  # later statements win
                with m.If(wants):
                    m.d.sync += [place.eq(writer.p.address[select_width:]), row.eq(writer.p.row)]
        self._arbitrate(m, [(writer, writer.p.address[:select_width]) for writer in writers])

        readers = [getattr(self, f"read_{name}") for name in self._readers]
        for index, bank in enumerate(banks):
            place = Signal.like(bank.read_address, name=f"read_place_{index}", reset_less=True)
            m.d.comb += bank.read_address.eq(place)
            m.d.sync += place.eq(readers[-1].request.payload[select_width:])
            comes = [reader.request.valid & (reader.request.payload[:select_width] == index) for reader in readers]
            m.d.sync += bank.read_enable.eq(Cat(comes).any())
            for reader, wants in reversed(list(zip(readers[:-1], comes, strict=False))):
                with m.If(wants):
                    m.d.sync += place.eq(reader.request.payload[select_width:])
        self._arbitrate(m, [(reader.request, reader.request.payload[:select_width]) for reader in readers])

        outputs = Array(Signal(8 * config.size, name=f"output_{index}", reset_less=True) for index in range(len(banks)))
        m.d.sync += [output.eq(bank.read_data) for output, bank in zip(outputs, banks, strict=True)]
        for name, reader in zip(self._readers, readers, strict=True):
            select = reader.request.payload[:select_width] if select_width else Const(0, 1)
            valid = reader.request.valid & reader.request.ready
            for stage in ("granted", "reading", "arrived"):
                following = Signal.like(select, name=f"{stage}_select_{name}", reset_less=True)
                following_valid = Signal(name=f"{stage}_{name}")
                m.d.sync += [following.eq(select), following_valid.eq(valid)]
                select, valid = following, following_valid
            row = Signal(row_layout(config), name=f"row_{name}", reset_less=True)
            m.d.sync += [reader.response.valid.eq(valid), row.eq(outputs[select])]
            m.d.comb += reader.response.payload.eq(row)
        return m

    def _arbitrate(self, m: Module, requests: list[tuple[stream.Interface, Value]]) -> None:
        """Grant a request if none of higher priority is for its bank. Bank conflicts are detected in parallel with
        arbitration, off the critical path."""
        for index, (request, bank) in enumerate(requests):
            taken = Cat(other.valid & (other_bank == bank) for other, other_bank in requests[:index])
            if isinstance(request.ready, Signal):
                m.d.comb += request.ready.eq(~taken.any())

    def _share(self, m: Module, banks: list[UnifiedBufferBank], select_width: int) -> None:
        """Serve one access per cycle, a write or a read: one shared path to all banks, and one back."""
        way = m.d.comb if self._is_small else m.d.sync
        writers = [getattr(self, f"write_{name}").request for name in self._writers]
        readers = [getattr(self, f"read_{name}") for name in self._readers]
        address = Signal(self.config.unified_buffer_address_width, reset_less=True)
        data = Signal(row_layout(self.config), reset_less=True)
        writes = Signal()
        chosen = Signal(row_layout(self.config), reset_less=True)
        row = Signal(row_layout(self.config), reset_less=True)
        select = Signal(max(1, select_width), reset_less=True)
        taken = Const(0)
        for writer in writers:
            if isinstance(writer.ready, Signal):
                m.d.comb += writer.ready.eq(~taken)
            taken = taken | writer.valid
        way += [writes.eq(taken), data.eq(writers[-1].p.row), address.eq(readers[-1].request.payload)]
        for reader in readers:
            m.d.comb += reader.request.ready.eq(~taken)
            taken = taken | reader.request.valid
        for reader in reversed(readers[:-1]):
            with m.If(reader.request.valid):
                way += address.eq(reader.request.payload)
        for writer in reversed(writers):
            with m.If(writer.valid):
                way += [address.eq(writer.p.address), data.eq(writer.p.row)]
        for index, bank in enumerate(banks):
            here = address[:select_width] == index
            m.d.comb += [
                bank.write_enable.eq(writes & here),
                bank.write_address.eq(address[select_width:]),
                bank.write_data.eq(data),
                bank.read_enable.eq(~writes & here),
                bank.read_address.eq(address[select_width:]),
            ]
        m.d.sync += select.eq(address[:select_width] if select_width else 0)
        way += [chosen.eq(Array(bank.read_data for bank in banks)[select]), row.eq(chosen)]
        for name, reader in zip(self._readers, readers, strict=True):
            valid = reader.request.valid & reader.request.ready
            for stage in ("granted",) if self._is_small else ("granted", "reading", "chosen", "arrived"):
                following = Signal(name=f"{stage}_{name}")
                m.d.sync += following.eq(valid)
                valid = following
            m.d.comb += [reader.response.valid.eq(valid), reader.response.payload.eq(row)]

    def _bank(self, target: Target) -> UnifiedBufferBank:
        if target.family is Family.ICE40 and Ice40Bank.fits(self.config):
            return Ice40Bank(self.config)
        if target.family is Family.ECP5:
            # Yosys makes a memory of 16 bytes of the fewest blocks of 9 bits, one above the other, with multiplexers
            # behind them. Of 8 bytes it makes blocks as deep as the memory, whose output registers are its own.
            return UnifiedBufferBank(self.config, columns=-(-self.config.size // _COLUMN_BYTES))
        return UnifiedBufferBank(self.config)
