"""Activation data path: the lanes turn accumulator values and elements into result bytes."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.arch.effects import TABLES
from openmxu.rtl.activation.activation_sequencer import beat_layout
from openmxu.rtl.activation.operand_multiplier import ELEMENT_WIDTH, OperandMultiplier
from openmxu.rtl.activation.parameter_memory import ParameterMemory, parameter_write_layout
from openmxu.rtl.activation.pooler import Pooler
from openmxu.rtl.activation.requantizer import Requantizer
from openmxu.rtl.activation.table_memory import TableMemory, table_write_layout
from openmxu.rtl.buffer.unified_buffer import row_layout
from openmxu.rtl.common.delayed import delayed
from openmxu.rtl.dispatch.commands import Operand, OutputLayout
from openmxu.rtl.fpga.carry_chain import chained_sum
from openmxu.rtl.fpga.target import Target
from openmxu.rtl.matrix.accumulators import read_latency

__all__ = ["ActivationDatapath", "Finish", "element_value", "latency", "result_beat_layout"]

_ENTRY, _TOTAL, _SELECTED, _SCALE = 1, 1, 1, 1
"""Register stages, in cycles: after the selection of a lane's value, the bias, the selection of a byte, of a scale."""


class Finish(data.Struct):
    """Post-processing of scaled totals: zero point and clamp; 16-bit results (``is_word``); lookup in a table."""

    output: OutputLayout
    is_word: 1
    table: 1
    table_number: range(TABLES)


def result_beat_layout(config: Config) -> data.StructLayout:
    """One result byte per lane, with flags for the last beat of a row and of a walk, and the pass's ``turns``."""
    flags = dict.fromkeys(("ends_row", "ends_walk", "turns"), 1)
    return data.StructLayout({"active": 1, "bytes": data.ArrayLayout(8, config.activation_lanes), **flags})


def element_value(low: Value, high: Value, format: data.View) -> Value:
    """The element in one byte or two, minus its zero point; with a legal one the result has ``ELEMENT_WIDTH`` bits."""
    sign = Mux(format.wide, high[7], low[7]) & format.is_signed
    upper = Mux(format.wide, high, sign.replicate(8))
    return Cat(low, upper, sign).as_signed() - format.zero_point


def latency(config: Config) -> int:
    """Cycles from a beat to its bytes."""
    return read_latency(config) + _after_values() + Requantizer.latency + TableMemory.read_latency


def _after_values() -> int:
    return _ENTRY + Pooler.latency + _TOTAL + OperandMultiplier.latency + _SELECTED


class ActivationDatapath(wiring.Component):
    """L lanes: selection of the value, pooling, bias, multiplication, scale, addition, clamp, table.

    There is no backpressure: the bytes of a beat come out :func:`latency` cycles later.

    Members
    -------
    beat
        See :func:`openmxu.rtl.activation.activation_sequencer.beat_layout`.
    low, high
        Unified buffer rows with the low and the high bytes of the pass's elements.
    values
        Accumulator values for the beat of ``read_latency(config)`` cycles before.
    operand_scales, finishes
        One of each per walk: the float32 scale of the elements that are added, or 1.0 if the walk ``is_int32``; the
        post-processing. Taken when the last beat no longer needs it.
    results
        See :func:`result_beat_layout`; active only for passes that complete a result.
    ending
        Set ``ending_lead`` cycles before the last beat of a walk's results.
    parameters, table
        Writes to the memories, only while no beats are in flight.
    """

    ending_lead = 4

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "beat": In(beat_layout(config)),
                "low": In(row_layout(config)),
                "high": In(row_layout(config)),
                "values": In(data.ArrayLayout(signed(32), config.activation_lanes)),
                "operand_scales": In(stream.Signature(32)),
                "finishes": In(stream.Signature(Finish)),
                "results": Out(result_beat_layout(config)),
                "ending": Out(1),
                "parameters": In(parameter_write_layout(config)),
                "table": In(table_write_layout(config)),
            }
        )

    @property
    def takes_values(self) -> Value:
        """Once elaborated: ``values`` matter in this cycle."""
        return self._takes_values

    def elaborate(self, platform: object) -> Module:
        m = Module()
        target = Target.of(platform)
        config = self._config
        groups = config.column_groups
        # Pipeline stages, as cycles after the beat.
        at_values = read_latency(config)
        at_element = at_values - 1
        at_pooler = at_values + _ENTRY
        at_bias = at_pooler + Pooler.latency
        at_total = at_bias + _TOTAL
        at_product = at_total + OperandMultiplier.latency
        at_requantizer = at_product + _SELECTED
        at_scale = at_requantizer + Requantizer.scale_delay
        at_addition = at_requantizer + Requantizer.addition_delay
        at_value = at_requantizer + Requantizer.latency
        at_finish = at_value - Requantizer.output_lead
        at_byte = at_value + TableMemory.read_latency
        at_ending = at_byte - self.ending_lead

        active = self._delayed_activity(m, at_byte)
        self._takes_values = active[at_values]
        beats = self._delayed_beats(
            m,
            {
                "format": 1,
                "from_accumulators": at_values,
                "from_elements": at_element,
                "maximum": at_element,
                "operation": at_pooler,
                "repeat": at_product,
                "parameters": at_scale - _SCALE - ParameterMemory.read_latency,
                "is_int32": at_scale - _SCALE,
                "operand": at_addition,
                "completes": at_byte,
                "ends_pass": at_byte,
                "ends_walk": at_byte,
                "turns": at_byte,
            },
        )

        m.submodules.parameters = parameters = ParameterMemory(config)
        scales = self.operand_scales
        finishes = self.finishes
        own_scale = Signal()
        is_int32 = beats[at_product].is_int32
        has_bias = beats[at_bias].operand != Operand.ADD
        is_word = delayed(m, finishes.p.is_word, at_value - at_finish, "is_word")
        is_odd_byte = delayed(m, beats[at_product].repeat[0], at_value - at_product, "is_odd_byte")
        table_number = delayed(m, finishes.p.table_number, at_value - at_finish, "table_number")
        looks_up = delayed(m, finishes.p.table, at_byte - at_finish, "looks_up")
        m.d.comb += [
            parameters.write.eq(self.parameters),
            parameters.bias_address.eq(beats[at_bias - ParameterMemory.read_latency].parameters),
            parameters.scale_address.eq(beats[at_scale - _SCALE - ParameterMemory.read_latency].parameters),
            own_scale.eq((beats[at_scale - _SCALE].operand == Operand.ADD) | beats[at_scale - _SCALE].is_int32),
            scales.ready.eq(active[at_scale - _SCALE] & beats[at_scale - _SCALE].ends_walk),
            finishes.ready.eq(active[at_finish] & beats[at_finish].ends_walk),
            self.results.active.eq(active[at_byte] & beats[at_byte].completes),
            self.results.ends_row.eq(beats[at_byte].ends_pass),
            self.results.ends_walk.eq(beats[at_byte].ends_walk),
            self.results.turns.eq(beats[at_byte].turns),
            self.ending.eq(active[at_ending] & beats[at_ending].completes & beats[at_ending].ends_walk),
        ]

        for lane in range(config.activation_lanes):
            pooler = Pooler(groups)
            multiplier = OperandMultiplier()
            requantizer = Requantizer(groups)
            table = TableMemory(config)
            m.submodules[f"pooler_{lane}"] = target.shared(pooler, sleeps=True)
            m.submodules[f"multiplier_{lane}"] = target.shared(multiplier, sleeps=True)
            m.submodules[f"requantizer_{lane}"] = target.shared(requantizer, sleeps=True)
            m.submodules[f"table_{lane}"] = target.shared(table, sleeps=True)

            element = self._element(m, lane, beats[1].format)
            # The alternative to an accumulator value is selected before that value arrives.
            other = Signal(signed(32), name=f"other_{lane}", reset_less=True)
            factor = Signal(signed(ELEMENT_WIDTH), name=f"factor_{lane}")
            with m.If(beats[at_element].from_elements):
                m.d.sync += other.eq(element)
            with m.Elif(beats[at_element].maximum):
                m.d.sync += other.eq(-(1 << 31))
            with m.Else():
                m.d.sync += other.eq(0)
            value = Mux(beats[at_values].from_accumulators, self.values[lane], other)
            # Without an element to multiply with, the factor is 1.
            m.d.comb += factor.eq(Mux(beats[at_element].operand == Operand.MULTIPLY, element, 1))
            m.d.comb += [
                pooler.value.eq(delayed(m, value, _ENTRY, f"entry_{lane}")),
                pooler.enable.eq(active[at_pooler]),
                pooler.operation.eq(beats[at_pooler].operation),
            ]

            biased = chained_sum(
                m,
                platform,
                f"biased_{lane}",
                [pooler.pooled.as_unsigned(), parameters.biases[lane].as_unsigned(), has_bias],
                first=lambda pooled, bias, has_bias: pooled,
                second=lambda pooled, bias, has_bias: bias & has_bias,
            )
            m.d.comb += [
                multiplier.total.eq(delayed(m, biased.as_signed(), _TOTAL, f"total_{lane}")),
                multiplier.element.eq(delayed(m, factor, at_total - at_element, f"factor_{lane}")),
            ]

            # A byte of the total passes the requantizer unchanged: scaled by 1, with the limits of a byte.
            low = multiplier.product.word_select(Mux(is_int32, beats[at_product].repeat, 0), 8)
            selected = Cat(low, Mux(is_int32, 0, multiplier.product[8:])).as_signed()
            scale = Mux(own_scale, scales.payload, parameters.scales[lane])
            m.d.comb += [
                requantizer.total.eq(delayed(m, selected, _SELECTED, f"selected_{lane}")),
                requantizer.scale.eq(delayed(m, scale, _SCALE, f"scale_{lane}")),
                requantizer.enable.eq(active[at_addition]),
                requantizer.adds.eq(beats[at_addition].operand == Operand.ADD),
                requantizer.output.eq(finishes.p.output),
            ]

            result = Mux(is_word & is_odd_byte, requantizer.value[8:], requantizer.value[:8])
            plain = delayed(m, result, TableMemory.read_latency, f"result_{lane}")
            m.d.comb += [
                table.write.eq(self.table),
                table.table.eq(table_number),
                table.index.eq(result),
                self.results.bytes[lane].eq(Mux(looks_up, table.value, plain)),
            ]
        return m

    def _delayed_activity(self, m: Module, cycles: int) -> list[Signal]:
        """The beat's ``active`` bit, delayed by 0, 1, 2, … cycles."""
        active = [self.beat.active]
        for cycle in range(1, cycles + 1):
            active.append(Signal(name=f"active_{cycle}"))
            m.d.sync += active[-1].eq(active[-2])
        return active

    def _delayed_beats(self, m: Module, last_cycles: dict[str, int]) -> list[data.View]:
        """The beat, delayed by 0, 1, 2, … cycles; each member is kept until the last cycle that needs it."""
        layout = beat_layout(self._config)
        beats = [self.beat]
        for cycle in range(1, max(last_cycles.values()) + 1):
            members = {name: layout[name].shape for name, last in last_cycles.items() if cycle <= last}
            beat = Signal(data.StructLayout(members), name=f"beat_{cycle}", reset_less=True)
            m.d.sync += [beat[name].eq(beats[-1][name]) for name in members]
            beats.append(beat)
        return beats

    def _element(self, m: Module, lane: int, format: data.View) -> Value:
        """A lane's element, a cycle before the accumulator values; ``format`` is that of the beat, a cycle later."""
        groups = self._config.column_groups
        columns = slice(8 * lane * groups, 8 * (lane + 1) * groups)
        low, high = (
            delayed(m, Value.cast(row)[columns].word_select(self.beat.group, 8), 1, f"{name}_{lane}")
            for name, row in (("low", self.low), ("high", self.high))
        )
        element = element_value(low, high, format)[:ELEMENT_WIDTH].as_signed()
        return delayed(m, element, read_latency(self._config) - 2, f"element_{lane}")
