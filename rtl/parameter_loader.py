"""Parameter loader: unified buffer rows to the parameter memory."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.legality import PARAMETER_ROWS
from openmxu.rtl import unified_buffer
from openmxu.rtl.unified_buffer import row_layout

__all__ = ["ParameterLoader"]


class ParameterLoader(wiring.Component):
    """Reads eight rows for each set; row i holds byte i of every column's parameter.

    Members
    -------
    start, unified_buffer, first, count
        ``start`` is held until ``done``, with the first row, the first set and the number of sets.
    done
        Set for one cycle when the last byte is written.
    rows
        Read port of the unified buffer.
    write_enable, write_address, write_byte, write_data
        For the parameter memory.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),
                "unified_buffer": In(config.unified_buffer_address_width),
                "first": In(config.parameter_set_width),
                "count": In(config.parameter_set_width + 1),
                "done": Out(1),
                "rows": Out(unified_buffer.ReadPortSignature(config)),
                "write_enable": Out(1),
                "write_address": Out(range(config.parameter_sets * config.column_groups)),
                "write_byte": Out(3),
                "write_data": Out(data.ArrayLayout(8, config.activation_lanes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        groups = config.column_groups
        address = Signal(config.unified_buffer_address_width, reset_less=True)
        sets_left = Signal.like(self.count, reset_less=True)
        set_number = Signal(config.parameter_set_width, reset_less=True)
        byte = Signal(3)
        group = Signal(range(max(2, groups)))
        held = Signal(row_layout(config), reset_less=True)
        m.d.comb += [
            self.rows.request.payload.eq(address),
            self.write_address.eq((set_number << ceil_log2(groups)) | group),
            self.write_byte.eq(byte),
        ]
        for lane in range(config.activation_lanes):
            m.d.comb += self.write_data[lane].eq(held[lane * groups])

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [
                    address.eq(self.unified_buffer),
                    set_number.eq(self.first),
                    sets_left.eq(self.count),
                ]
                with m.If(self.start):
                    m.next = "REQUEST"
            with m.State("REQUEST"):
                m.d.comb += self.rows.request.valid.eq(1)
                with m.If(self.rows.request.ready):
                    m.d.sync += address.eq(address + 1)
                    m.next = "RESPONSE"
            with m.State("RESPONSE"):
                m.d.sync += held.eq(self.rows.response.payload)
                with m.If(self.rows.response.valid):
                    m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += self.write_enable.eq(1)
                # The next column of each lane moves to the lane's first place.
                m.d.sync += [Value.cast(held).eq(Value.cast(held) >> 8), group.eq(group + 1)]
                with m.If(group == groups - 1):
                    m.d.sync += [group.eq(0), byte.eq(byte + 1)]
                    m.next = "REQUEST"
                    with m.If(byte == PARAMETER_ROWS - 1):
                        m.d.sync += [set_number.eq(set_number + 1), sets_left.eq(sets_left - 1)]
                        with m.If(sets_left == 1):
                            m.d.comb += self.done.eq(1)
                            m.next = "IDLE"
        return m
