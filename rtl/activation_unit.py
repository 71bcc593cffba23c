"""Activation unit: accumulator rows through bias, scale and clamp to unified buffer rows."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config, ceil_log2
from openmxu.rtl import unified_buffer
from openmxu.rtl.accumulators import read_latency
from openmxu.rtl.commands import ActivationKind, OutputLayout, activation_command
from openmxu.rtl.parameter_loader import ParameterLoader
from openmxu.rtl.parameter_memory import ParameterMemory
from openmxu.rtl.requantizer import Requantizer
from openmxu.rtl.row_walker import RowWalker
from openmxu.rtl.stream_fifo import StreamFIFO
from openmxu.rtl.unified_buffer import row_layout

__all__ = ["ActivationUnit"]


class ActivationUnit(wiring.Component):
    """Executes Activate and LOAD_PARAMETERS.

    Rows stream through L requantizers, S/L cycles a row, instruction after instruction without a gap. INT32 output
    passes each row four times and takes another byte of the sums each time.

    Members
    -------
    commands
        Taken when their first row comes next, or their last parameter is loaded.
    read, values
        Of the accumulators.
    parameter_rows
        Read port of the unified buffer, for parameters.
    results
        Write port of the unified buffer.
    done
        Set for one cycle when the last row of an Activate is written, or the last parameter loaded.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "commands": In(stream.Signature(activation_command(config))),
                "read": Out(stream.Signature(config.accumulator_address_width)),
                "values": In(data.ArrayLayout(signed(32), config.activation_lanes)),
                "parameter_rows": Out(unified_buffer.ReadPortSignature(config)),
                "results": Out(unified_buffer.WritePortSignature(config)),
                "done": Out(1),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    @property
    def rows_in_flight(self) -> int:
        """Rows that may be between accumulators and unified buffer: enough for a row every S/L cycles."""
        latency = read_latency(self.config) + Requantizer.latency + 4
        return 2 + -(-latency // self.config.column_groups)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        groups = config.column_groups
        command = self.commands.p
        output_rows = range(4 * (1 + max(config.unified_buffer_rows, config.accumulator_rows)))

        destination = data.StructLayout(
            {
                "address": config.unified_buffer_address_width,
                "is_int32": 1,
            }
        )
        result = data.StructLayout(
            {"address": config.unified_buffer_address_width, "row": row_layout(config), "last": 1}
        )
        m.submodules.formats = formats = StreamFIFO(OutputLayout, 4)
        m.submodules.destinations = destinations = StreamFIFO(destination, 4)
        m.submodules.results = results = StreamFIFO(result, self.rows_in_flight)
        m.submodules.parameters = parameters = ParameterMemory(config)
        m.submodules.loader = loader = ParameterLoader(config)

        # Rows are asked for while there is room for their results.
        walker = RowWalker(config.accumulator_address_width, command.rows.shape())
        m.submodules.walker = walker
        room = Signal(range(self.rows_in_flight + 1), init=self.rows_in_flight)
        next_room = Signal.like(room)
        has_room = Signal(init=1)
        is_empty = Signal(init=1)
        written = Signal()
        byte = Signal(2)
        is_int32 = Signal(reset_less=True)
        set_number = Signal(config.parameter_set_width, reset_less=True)
        is_load = Signal()
        begins = Signal()
        row_done = Signal()
        last = Signal()
        granted = Signal()
        m.d.comb += [
            is_load.eq(command.kind == ActivationKind.LOAD_PARAMETERS),
            walker.ranges.p.address.eq(command.accumulator),
            walker.ranges.p.rows.eq(command.rows),
            walker.ranges.valid.eq(self.commands.valid & ~is_load & formats.input.ready & destinations.input.ready),
            begins.eq(walker.ranges.valid & walker.ranges.ready),
            formats.input.payload.eq(command.output),
            formats.input.valid.eq(begins),
            destinations.input.p.address.eq(command.unified_buffer),
            destinations.input.p.is_int32.eq(command.kind == ActivationKind.INT32),
            destinations.input.valid.eq(begins),
            loader.start.eq(self.commands.valid & is_load & ~walker.rows.valid & is_empty),
            loader.unified_buffer.eq(command.unified_buffer),
            loader.first.eq(command.parameters),
            loader.count.eq(command.rows),
            self.commands.ready.eq(begins | loader.done),
            self.read.payload.eq(walker.rows.p.address),
            self.read.valid.eq(walker.rows.valid & has_room),
            granted.eq(self.read.valid & self.read.ready),
            row_done.eq(~is_int32 | (byte == 3)),
            walker.rows.ready.eq(self.read.ready & has_room & row_done),
            last.eq(walker.rows.p.last & row_done),
            next_room.eq(room + written - granted),
        ]
        m.d.sync += [
            room.eq(next_room),
            has_room.eq(next_room != 0),
            is_empty.eq(next_room == self.rows_in_flight),
        ]
        with m.If(begins):
            m.d.sync += [is_int32.eq(command.kind == ActivationKind.INT32), set_number.eq(command.parameters)]
        with m.If(granted):
            m.d.sync += byte.eq(Mux(row_done, 0, byte + 1))

        connect(m, loader.rows, flipped(self.parameter_rows))
        m.d.comb += [
            parameters.write_enable.eq(loader.write_enable),
            parameters.write_address.eq(loader.write_address),
            parameters.write_byte.eq(loader.write_byte),
            parameters.write_data.eq(loader.write_data),
        ]

        steps = self._steps(m, granted, last, byte, set_number)
        latency = read_latency(config)
        address = Signal(range(config.parameter_sets * groups))
        m.d.comb += address.eq((steps.set_number << ceil_log2(groups)) | steps.group)
        m.d.comb += parameters.read_address.eq(
            self._delay(m, address, latency - ParameterMemory.read_latency, "address")
        )
        at_input = self._delay(m, Cat(steps.active, steps.end_of_row, steps.end), latency, "at_input")
        byte_at_input = self._delay(m, steps.byte, latency, "byte")
        lead = Requantizer.latency - Requantizer.output_lead
        at_format = self._delay(m, at_input, lead, "at_format")
        at_output = self._delay(m, at_format, Requantizer.output_lead, "at_output")
        active, end_of_row, end = at_output

        m.d.comb += formats.output.ready.eq(at_format[0] & at_format[2])
        columns = [None] * config.size
        for lane in range(config.activation_lanes):
            requantizer = Requantizer()
            m.submodules[f"lane_{lane}"] = requantizer
            m.d.comb += [
                requantizer.accumulator.eq(self.values[lane]),
                requantizer.bias.eq(parameters.read_data[lane].bias),
                requantizer.scale.eq(parameters.read_data[lane].scale),
                requantizer.byte.eq(byte_at_input),
                requantizer.output.eq(formats.output.payload),
            ]
            newest = Mux(destinations.output.p.is_int32, requantizer.sum_byte, requantizer.value[:8])
            collected = Signal(8 * (groups - 1), name=f"collected_{lane}", reset_less=True)
            with m.If(active):
                m.d.sync += collected.eq(Cat(collected, newest)[8:])
            for group in range(groups):
                columns[lane * groups + group] = Cat(collected, newest).word_select(group, 8)

        count = Signal(output_rows)
        m.d.comb += [
            results.input.valid.eq(active & end_of_row),
            results.input.p.address.eq(destinations.output.p.address + count),
            results.input.p.last.eq(end),
            Value.cast(results.input.p.row).eq(Cat(columns)),
            destinations.output.ready.eq(active & end),
        ]
        with m.If(active & end_of_row):
            m.d.sync += count.eq(Mux(end, 0, count + 1))

        m.d.comb += [
            self.results.request.p.address.eq(results.output.p.address),
            self.results.request.p.row.eq(results.output.p.row),
            self.results.request.valid.eq(results.output.valid),
            results.output.ready.eq(self.results.request.ready),
            written.eq(results.output.valid & results.output.ready),
            self.done.eq((written & results.output.p.last) | loader.done),
        ]
        return m

    def _steps(self, m: Module, granted: Signal, last: Signal, byte: Signal, set_number: Signal) -> data.View:
        """What the unit reads in each of the S/L cycles from the one in which a row is granted."""
        config = self.config
        groups = config.column_groups
        steps = Signal(
            data.StructLayout(
                {
                    "active": 1,
                    "group": range(max(2, groups)),
                    "set_number": config.parameter_set_width,
                    "byte": 2,
                    "end_of_row": 1,
                    "end": 1,
                }
            )
        )
        held = Signal.like(steps)
        running = Signal()
        group = Signal(range(max(2, groups)))
        m.d.comb += [
            steps.active.eq(granted | running),
            steps.group.eq(group),
            steps.set_number.eq(Mux(running, held.set_number, set_number)),
            steps.byte.eq(Mux(running, held.byte, byte)),
            steps.end_of_row.eq(steps.active & (group == groups - 1)),
            steps.end.eq(steps.end_of_row & Mux(running, held.end, last)),
        ]
        with m.If(granted):
            m.d.sync += [
                held.set_number.eq(set_number),
                held.byte.eq(byte),
                held.end.eq(last),
            ]
        with m.If(steps.active):
            m.d.sync += [group.eq(group + 1), running.eq(1)]
            with m.If(steps.end_of_row):
                m.d.sync += [group.eq(0), running.eq(0)]
        return steps

    @staticmethod
    def _delay(m: Module, value: Value, cycles: int, name: str) -> Value:
        for stage in range(cycles):
            delayed = Signal.like(Value.cast(value), name=f"{name}_{stage}", init=0)
            m.d.sync += delayed.eq(value)
            value = delayed
        return value
