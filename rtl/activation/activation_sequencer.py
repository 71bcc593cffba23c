"""Activation sequencer: splits passes into beats, the cycles in which each lane takes one column."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config, ceil_log2
from openmxu.rtl.activation.element_fetcher import pass_layout
from openmxu.rtl.activation.pooler import PoolOperation
from openmxu.rtl.dispatch.commands import ElementFormat, Operand

__all__ = ["ActivationSequencer", "beat_layout", "sequence_layout"]


def sequence_layout(config: Config) -> data.StructLayout:
    """Settings that all passes of a walk share.

    Members
    -------
    parameters
        Number of the parameter set.
    maximum
        Pooling takes the maximum of a window rather than its sum.
    is_int32
        Results are bytes of the totals.
    source_format, operand_format
        Element formats of the source and of the second operand.
    """
    return data.StructLayout(
        {
            "parameters": config.parameter_set_width,
            "maximum": 1,
            "is_int32": 1,
            "source_format": ElementFormat,
            "operand_format": ElementFormat,
        }
    )


def beat_layout(config: Config) -> data.StructLayout:
    """Beat j of a pass: lane l works on column l·S/L + j.

    Members
    -------
    active
        There is a beat; the other members are valid only then.
    group
        The number j.
    from_accumulators, from_elements, operand, repeat
        As in the pass, see :func:`openmxu.rtl.activation.element_fetcher.pass_layout`.
    format
        Format of the pass's elements.
    operation, maximum
        Operation of the pooler; whether positions outside the plane count as -2**31 rather than 0.
    is_int32
        See :func:`sequence_layout`.
    parameters
        Address of the group in the parameter memory.
    completes
        The pass completes a result.
    ends_pass, ends_walk
        Last beat of the pass, of the walk.
    turns
        That of the pass.
    """
    return data.StructLayout(
        {
            "active": 1,
            "group": range(config.column_groups),
            "from_accumulators": 1,
            "from_elements": 1,
            "format": ElementFormat,
            "operand": Operand,
            "repeat": 2,
            "operation": PoolOperation,
            "maximum": 1,
            "is_int32": 1,
            "parameters": range(config.parameter_sets * config.column_groups),
            "completes": 1,
            "ends_pass": 1,
            "ends_walk": 1,
            "turns": 1,
        }
    )


class ActivationSequencer(wiring.Component):
    """Starts a pass when the pass and its accumulator row are available; S/L cycles each.

    Members
    -------
    sequences
        See :func:`sequence_layout`; taken with the last beat of their walk.
    passes
        See :func:`openmxu.rtl.activation.element_fetcher.pass_layout`; taken with their last beat.
    read
        Read request to the accumulators, in the cycle of the pass's first beat.
    beat
        See :func:`beat_layout`; its pass is still offered in that cycle.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "sequences": In(stream.Signature(sequence_layout(config))),
                "passes": In(stream.Signature(pass_layout(config))),
                "read": Out(stream.Signature(config.accumulator_address_width)),
                "beat": Out(beat_layout(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        groups = self._config.column_groups
        pass_, sequence, beat = self.passes.p, self.sequences.p, self.beat

        may_start = Signal()
        starts = Signal()
        running = Signal()
        group = Signal(range(groups))
        # Last beat of the pass; a register, because the ready of `passes` is needed early in the cycle.
        ends_pass = Signal(init=groups == 1)
        m.d.comb += [
            running.eq(group != 0),
            may_start.eq(self.passes.valid & self.sequences.valid & ~running),
            self.read.valid.eq(may_start & pass_.from_accumulators),
            self.read.payload.eq(pass_.row),
            starts.eq(may_start & (self.read.ready | ~pass_.from_accumulators)),
            # The last of several beats does not wait for anything.
            self.passes.ready.eq(ends_pass & (starts if groups == 1 else 1)),
            self.sequences.ready.eq(beat.active & beat.ends_walk),
        ]
        with m.If(beat.active):
            m.d.sync += [
                group.eq(Mux(ends_pass, 0, group + 1)),
                ends_pass.eq((group == (groups - 2) % groups) | (groups == 1)),
            ]

        m.d.comb += [
            beat.active.eq(starts | running),
            beat.group.eq(group),
            beat.from_accumulators.eq(pass_.from_accumulators),
            beat.from_elements.eq(pass_.from_elements),
            beat.format.eq(Mux(pass_.operand == Operand.NONE, sequence.source_format, sequence.operand_format)),
            beat.operand.eq(pass_.operand),
            beat.repeat.eq(pass_.repeat),
            beat.maximum.eq(sequence.maximum),
            beat.is_int32.eq(sequence.is_int32),
            beat.parameters.eq((sequence.parameters << ceil_log2(groups)) | group),
            beat.completes.eq(pass_.completes),
            beat.ends_pass.eq(ends_pass),
            beat.ends_walk.eq(ends_pass & pass_.last),
            beat.turns.eq(pass_.turns),
        ]
        with m.If(pass_.operand == Operand.MULTIPLY):
            m.d.comb += beat.operation.eq(PoolOperation.HOLD)
        with m.Elif(pass_.begins):
            m.d.comb += beat.operation.eq(PoolOperation.FIRST)
        with m.Elif(sequence.maximum):
            m.d.comb += beat.operation.eq(PoolOperation.MAXIMUM)
        with m.Else():
            m.d.comb += beat.operation.eq(PoolOperation.SUM)
        return m
