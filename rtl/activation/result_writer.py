"""Result writer: collects the lanes' bytes into unified buffer rows."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.activation.activation_datapath import result_beat_layout
from openmxu.rtl.buffer import unified_buffer
from openmxu.rtl.buffer.unified_buffer import row_layout
from openmxu.rtl.fpga.carry_chain import chained_sum

__all__ = ["ResultWriter", "destination_layout"]


def destination_layout(config: Config) -> data.StructLayout:
    """Where the results of a walk go: the first row, and the order of the walk."""
    return data.StructLayout({"first": config.unified_buffer_address_width, "by_parity": 1})


class ResultWriter(wiring.Component):
    """Collects rows and writes those of a walk to consecutive rows of the unified buffer, which never waits.

    Results of a walk by parity go to every other row, up to the one that ``turns``, then to those between them.

    Members
    -------
    destinations
        See :func:`destination_layout`; one for each walk, taken when its last row is written.
    bytes
        See :func:`openmxu.rtl.activation.activation_datapath.result_beat_layout`.
    results
        Write port of the unified buffer, ``latency`` cycles behind the last byte of a row.
    done
        The unified buffer takes the last row of a walk.
    """

    latency = 1

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "destinations": In(stream.Signature(destination_layout(config))),
                "bytes": In(result_beat_layout(config)),
                "results": Out(unified_buffer.WritePortSignature(config, always_ready=True)),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        groups = config.column_groups
        ends_row = Signal()
        m.d.comb += ends_row.eq(self.bytes.active & self.bytes.ends_row)
        columns = []
        for lane in range(config.activation_lanes):
            newest = self.bytes.bytes[lane]
            collected = Signal(8 * (groups - 1), name=f"collected_{lane}", reset_less=True)
            with m.If(self.bytes.active):
                m.d.sync += collected.eq(Cat(collected, newest)[8:])
            columns.append(Cat(collected, newest))
        # In registers, because the lanes are far away on the chip.
        row = Signal(row_layout(config), reset_less=True)
        is_last, turns = (Signal(name=name, reset_less=True) for name in ("is_last", "turns"))
        has_row = Signal()
        m.d.sync += [
            has_row.eq(ends_row),
            is_last.eq(self.bytes.ends_walk),
            turns.eq(self.bytes.turns),
            Value.cast(row).eq(Cat(columns)),
        ]

        next_address = Signal(config.unified_buffer_address_width, reset_less=True)
        begins = Signal(init=1)
        request, destination = self.results.request, self.destinations.p
        m.d.comb += [
            request.p.address.eq(Mux(begins, destination.first, next_address)),
            request.p.row.eq(row),
            request.valid.eq(has_row),
            self.done.eq(has_row & is_last),
            self.destinations.ready.eq(self.done),
        ]
        skips = destination.by_parity & ~turns
        following = chained_sum(
            m,
            platform,
            "following",
            [Cat(skips, Const(0, len(next_address) - 1)), destination.first, next_address, begins | turns],
            first=lambda skips, first, address, restarts: (first & restarts) | (address & ~restarts),
            second=lambda skips, first, address, restarts: skips,
            carry=1,
        )
        with m.If(has_row):
            m.d.sync += [next_address.eq(following), begins.eq(is_last)]
        return m
