"""Compact activation unit: rows of accumulators become unified buffer rows, one value after the other."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.effects import PARAMETER_ROWS
from openmxu.rtl.buffer import unified_buffer
from openmxu.rtl.dispatch.commands import ActivationKind, activation_command
from openmxu.rtl.lite.serial_requantizer import SerialRequantizer

__all__ = ["CompactActivationUnit"]

_VALUE_BYTES = 4
"""Of a bias, and of a scale."""


class CompactActivationUnit(wiring.Component):
    """Executes the Activate of the lite profile, and LOAD_PARAMETERS, with one serial requantizer.

    There is no place for a row: its accumulators are looked at for each of its columns, and so are the rows of
    parameters. A command stays what it is until it is taken, and whatever can be read from it is in no register.

    Members
    -------
    commands
        Taken when they are done. Of an Activate, source and result, their number, the parameter set, zero point and
        limits count.
    row, columns
        Of the accumulators: a row, and its sums, column n from n + 1 cycles after it was asked for.
    rows
        Read port of the unified buffer.
    results
        Write port of the unified buffer.
    done
        Set for one cycle when the last row of an Activate is written, or the last byte loaded.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "commands": In(stream.Signature(activation_command(config))),
                "row": Out(config.accumulator_address_width),
                "columns": In(data.ArrayLayout(signed(32), config.size)),
                "rows": Out(unified_buffer.ReadPortSignature(config)),
                "results": Out(unified_buffer.WritePortSignature(config)),
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
        command = self.commands.p
        m.submodules.requantizer = requantizer = SerialRequantizer()

        row = Signal(config.unified_buffer_address_width)
        column = Signal(range(config.size))
        ends_row = Signal()
        is_load = Signal()
        is_last = Signal()
        address = Signal.like(row)
        next_row = row + 1
        m.d.comb += [
            ends_row.eq(column == config.size - 1),
            is_load.eq(command.kind != ActivationKind.ACTIVATE),
            is_last.eq(next_row == Mux(is_load, command.walk.rows * PARAMETER_ROWS, command.walk.rows)),
            address.eq(command.unified_buffer + row),
            self.row.eq(command.walk.address + row),
            self.rows.request.payload.eq(address),
            self.commands.ready.eq(self.done),
        ]

        # A load's rows hold a byte of each parameter of a set, eight rows for each set.
        loaded_byte = row[: ceil_log2(PARAMETER_ROWS)]
        loaded_set = row[ceil_log2(PARAMETER_ROWS) :]
        parameters = Signal(range(config.parameter_sets * config.size))
        set_number = Signal(config.parameter_set_width)
        m.d.comb += [
            set_number.eq(command.parameters + Mux(is_load, loaded_set, 0)),
            parameters.eq(Cat(column, set_number)),
        ]
        writes = Signal()
        byte = self.rows.response.payload[column]
        self._biases(m, parameters, requantizer, writes & ~loaded_byte[-1], loaded_byte[:-1], byte)
        self._scales(m, parameters, requantizer, writes & loaded_byte[-1], loaded_byte[:-1], byte)

        result = Signal(8 * config.size, reset_less=True)
        m.d.comb += [
            requantizer.total.eq(self.columns[column]),
            requantizer.output.eq(command.output),
            self.results.request.p.address.eq(address),
            Value.cast(self.results.request.p.row).eq(result),
        ]
        with m.If(requantizer.active):
            m.d.sync += result.eq(Cat(result[1:], requantizer.bit))

        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [row.eq(0), column.eq(0)]
                with m.If(self.commands.valid):
                    m.next = "READ"
                    with m.If(is_load):
                        m.next = "REQUEST"
            with m.State("READ"):
                m.next = "START"
            with m.State("START"):
                # A column later its sum has long been there.
                m.d.comb += requantizer.start.eq(1)
                m.next = "REQUANTIZE"
            with m.State("REQUANTIZE"):
                with m.If(requantizer.done):
                    m.d.sync += column.eq(column + 1)
                    m.next = "READ"
                    with m.If(ends_row):
                        m.next = "WRITE"
            with m.State("WRITE"):
                m.d.comb += self.results.request.valid.eq(1)
                with m.If(self.results.request.ready):
                    m.d.sync += row.eq(next_row)
                    m.d.comb += self.done.eq(is_last)
                    m.next = "READ"
                    with m.If(is_last):
                        m.next = "IDLE"
            with m.State("REQUEST"):
                m.d.comb += self.rows.request.valid.eq(1)
                with m.If(self.rows.request.ready):
                    m.next = "RESPONSE"
            with m.State("RESPONSE"):
                with m.If(self.rows.response.valid):
                    m.d.comb += writes.eq(1)
                    m.d.sync += column.eq(column + 1)
                    m.next = "REQUEST"
                    with m.If(ends_row):
                        m.d.sync += row.eq(next_row)
                        m.d.comb += self.done.eq(is_last)
                        with m.If(is_last):
                            m.next = "IDLE"
        return m

    def _biases(
        self, m: Module, address: Value, requantizer: SerialRequantizer, writes: Value, place: Value, byte: Value
    ) -> None:
        """A memory of bytes, which the requantizer reads one after the other."""
        config = self.config
        m.submodules.biases = memory = Memory(
            shape=8, depth=config.parameter_sets * config.size * _VALUE_BYTES, init=[]
        )
        read, write = memory.read_port(), memory.write_port()
        m.d.comb += [
            read.en.eq(1),
            read.addr.eq(Cat(requantizer.bias_byte, address)),
            requantizer.bias.eq(read.data),
            write.en.eq(writes),
            write.addr.eq(Cat(place, address)),
            write.data.eq(byte),
        ]

    def _scales(
        self, m: Module, address: Value, requantizer: SerialRequantizer, writes: Value, place: Value, byte: Value
    ) -> None:
        """A memory of words, of which the requantizer needs all bits at once."""
        config = self.config
        m.submodules.scales = memory = Memory(
            shape=8 * _VALUE_BYTES, depth=config.parameter_sets * config.size, init=[]
        )
        read, write = memory.read_port(), memory.write_port(granularity=8)
        m.d.comb += [
            read.en.eq(1),
            read.addr.eq(address),
            requantizer.scale.eq(read.data),
            write.en.eq(Cat(writes & (place == index) for index in range(_VALUE_BYTES))),
            write.addr.eq(address),
            write.data.eq(byte.replicate(_VALUE_BYTES)),
        ]
