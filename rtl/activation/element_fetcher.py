"""Element fetcher: steps of a walk become passes over rows, with the unified buffer rows that they need."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect

from openmxu.arch.config import Config
from openmxu.rtl.buffer import unified_buffer
from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer, row_layout
from openmxu.rtl.common.plane_walker import step_layout
from openmxu.rtl.common.register_slice import RegisterSlice
from openmxu.rtl.common.stream_fifo import StreamFIFO
from openmxu.rtl.dispatch.commands import ElementFormat, Operand, activation_walk

__all__ = ["ElementFetcher", "fetch_layout", "pass_layout"]


def fetch_layout(config: Config) -> data.StructLayout:
    """What the steps of a walk need: members of :func:`openmxu.rtl.dispatch.commands.activation_command`."""
    return data.StructLayout(
        {
            "from_unified_buffer": 1,
            "source_format": ElementFormat,
            "operand": Operand,
            "operand_address": config.unified_buffer_address_width,
            "operand_format": ElementFormat,
            "repeats": 2,
        }
    )


def pass_layout(config: Config) -> data.StructLayout:
    """One row of values through the lanes.

    Members
    -------
    row, from_accumulators
        The values are those of this row of the accumulators.
    from_elements, format
        The values are elements of the unified buffer, in this format. If neither is set, the position lies outside the
        plane.
    operand
        The values are the second operand, to be used like this, or ``NONE``: they belong to the source's window.
    begins
        They are the first of their window; of the second operand always.
    completes, last
        A result follows from this pass; the last one of the walk.
    repeat
        How many times the result's window has been walked before.
    """
    return data.StructLayout(
        {
            "row": config.accumulator_address_width,
            "from_accumulators": 1,
            "from_elements": 1,
            "format": ElementFormat,
            "operand": Operand,
            "begins": 1,
            "completes": 1,
            "last": 1,
            "repeat": 2,
        }
    )


class ElementFetcher(wiring.Component):
    """Each step is a pass; one that ends a window with a second operand is followed by the operand's pass.

    Rows are requested ahead, in the order of the passes. A pass from the unified buffer is offered when its rows are
    there; others need no time of the unified buffer.

    Members
    -------
    commands
        See :func:`fetch_layout`; taken with their last step.
    steps
        Of a :class:`~openmxu.rtl.common.plane_walker.PlaneWalker`.
    rows
        Read port of the unified buffer.
    passes
        See :func:`pass_layout`.
    low, high
        The bytes of the elements of the pass that is offered: their row, or if they are wide both of their rows.
    """

    passes_ahead = 8
    """Passes whose rows are requested ahead: at one pass per cycle the unified buffer takes seven to answer."""

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "commands": In(stream.Signature(fetch_layout(config))),
                "steps": In(stream.Signature(step_layout(activation_walk(config)))),
                "rows": Out(unified_buffer.ReadPortSignature(config)),
                "passes": Out(stream.Signature(pass_layout(config))),
                "low": Out(row_layout(config)),
                "high": Out(row_layout(config)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self._config
        # A row's place is free because its pass is put into the queue together with its request, and a slice behind the
        # queue holds two more.
        m.submodules.queue = queue = StreamFIFO(pass_layout(config), self.passes_ahead)
        m.submodules.low = low = StreamFIFO(row_layout(config), self.passes_ahead + 2)
        m.submodules.high = high = StreamFIFO(row_layout(config), self.passes_ahead + 2)

        is_high = self._fetch(m, self._make_passes(m), queue)
        self._read(m, is_high, low, high)

        # A pass and its rows leave the queues together; whoever takes it decides late in a cycle.
        m.submodules.heads = heads = RegisterSlice(pass_layout(config))
        connect(m, queue.output, heads.input)
        head = heads.output.p
        is_wide = head.from_elements & head.format.wide
        offered = data.StructLayout({"content": head.shape(), "low": row_layout(config), "high": row_layout(config)})
        m.submodules.offered = offered = RegisterSlice(offered)
        m.d.comb += [
            offered.input.p.low.eq(low.output.payload),
            offered.input.p.high.eq(high.output.payload),
            offered.input.p.content.eq(head),
            offered.input.valid.eq(
                heads.output.valid & (~head.from_elements | low.output.valid) & (~is_wide | high.output.valid)
            ),
            heads.output.ready.eq(offered.input.valid & offered.input.ready),
            self.low.eq(offered.output.p.low),
            self.high.eq(offered.output.p.high),
            self.passes.payload.eq(offered.output.p.content),
            self.passes.valid.eq(offered.output.valid),
            offered.output.ready.eq(self.passes.ready),
            low.output.ready.eq(heads.output.ready & head.from_elements),
            high.output.ready.eq(heads.output.ready & is_wide),
        ]
        return m

    def _make_passes(self, m: Module) -> stream.Interface:
        """Passes, each with the address of its first unified buffer row."""
        config = self._config
        width = config.unified_buffer_address_width
        layout = data.StructLayout({"content": pass_layout(config), "address": width})
        m.submodules.made = slice_ = RegisterSlice(layout)
        passes = slice_.input
        step, command, made = self.steps.p, self.commands.p, passes.p.content
        has_operand = Signal()
        is_operand = Signal()
        proceeds = Signal()
        offset = Signal(width)
        m.d.comb += [
            has_operand.eq(step.ends & (command.operand != Operand.NONE)),
            passes.valid.eq(self.steps.valid & self.commands.valid),
            proceeds.eq(passes.valid & passes.ready),
            self.steps.ready.eq(passes.ready & self.commands.valid & (is_operand | ~has_operand)),
            self.commands.ready.eq(self.steps.valid & self.steps.ready & step.last),
            made.row.eq(step.address),
            made.repeat.eq(step.repeat),
        ]
        with m.If(is_operand):
            m.d.comb += [
                passes.p.address.eq(command.operand_address + offset),
                made.from_accumulators.eq(0),
                made.from_elements.eq(1),
                made.format.eq(command.operand_format),
                made.operand.eq(command.operand),
                made.begins.eq(1),
                made.completes.eq(1),
                made.last.eq(step.last),
            ]
        with m.Else():
            m.d.comb += [
                passes.p.address.eq(step.address),
                made.from_accumulators.eq(step.inside & ~command.from_unified_buffer),
                made.from_elements.eq(step.inside & command.from_unified_buffer),
                made.format.eq(command.source_format),
                made.operand.eq(Operand.NONE),
                made.begins.eq(step.begins),
                made.completes.eq(step.ends & ~has_operand),
                made.last.eq(step.last & ~has_operand),
            ]
        with m.If(proceeds):
            m.d.sync += is_operand.eq(has_operand & ~is_operand)
            # All bytes of a result use the same element.
            with m.If(is_operand & (step.repeat == command.repeats)):
                m.d.sync += offset.eq(Mux(step.last, 0, offset + Mux(command.operand_format.wide, 2, 1)))
        return slice_.output

    def _fetch(self, m: Module, passes: stream.Interface, queue: StreamFIFO) -> Signal:
        """Request the rows of each pass, which is queued together with its first request; returns which row it is."""
        request = self.rows.request
        content = passes.p.content
        is_high = Signal()
        is_wide = content.from_elements & content.format.wide
        m.d.comb += [
            queue.input.payload.eq(content),
            queue.input.valid.eq(passes.valid & ~is_high & (request.ready | ~content.from_elements)),
            request.payload.eq(passes.p.address + is_high),
            request.valid.eq(passes.valid & content.from_elements & (queue.input.ready | is_high)),
            passes.ready.eq(
                Mux(
                    is_high,
                    request.ready,
                    queue.input.ready & ~is_wide & (request.ready | ~content.from_elements),
                )
            ),
        ]
        with m.If(request.valid & request.ready):
            m.d.sync += is_high.eq(is_wide & ~is_high)
        return is_high

    def _read(self, m: Module, is_high: Signal, low: StreamFIFO, high: StreamFIFO) -> None:
        """Keep the rows that come until their pass does."""
        # Requests wait in the port's register slice, two at most, and then for the unified buffer's answer.
        m.submodules.order = order = StreamFIFO(1, UnifiedBuffer.read_latency + 3)
        request, response = self.rows.request, self.rows.response
        m.d.comb += [
            order.input.payload.eq(is_high),
            order.input.valid.eq(request.valid & request.ready),
            order.output.ready.eq(response.valid),
        ]
        is_its_high = order.output.payload[0]
        for fifo, is_its_row in ((low, ~is_its_high), (high, is_its_high)):
            m.d.comb += [fifo.input.payload.eq(response.payload), fifo.input.valid.eq(response.valid & is_its_row)]
