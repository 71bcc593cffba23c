"""Element fetcher: turns the steps of a walk into passes and reads the unified buffer rows that they need."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.buffer import unified_buffer
from openmxu.rtl.buffer.unified_buffer import row_layout
from openmxu.rtl.common.address_generator import step_layout
from openmxu.rtl.common.buffered_fifo import BufferedFIFO
from openmxu.rtl.common.stream_fifo import StreamFIFO
from openmxu.rtl.dispatch.commands import Operand, activation_walk

__all__ = ["ElementFetcher", "fetch_layout", "pass_layout"]


def fetch_layout(config: Config) -> data.StructLayout:
    """The fields of :func:`openmxu.rtl.dispatch.commands.activation_command` that the steps of a walk need."""
    return data.StructLayout(
        {
            "from_unified_buffer": 1,
            "source_wide": 1,
            "operand": Operand,
            "operand_address": config.unified_buffer_address_width,
            "operand_wide": 1,
            "repeats": 2,
        }
    )


def pass_layout(config: Config) -> data.StructLayout:
    """One row of values through the lanes.

    Members
    -------
    row, from_accumulators
        The values are those of this row of the accumulators.
    from_elements
        The values are elements of the unified buffer. If neither is set, the position lies outside the plane.
    operand
        How the values are used as the second operand; ``NONE`` if they belong to the source's window.
    begins
        The pass is the first of a window; always set for a second operand.
    completes, last, turns
        The pass completes a result; it is the last one of the walk; the step's ``turns``.
    repeat
        Number of times that the result's window has been walked before.
    """
    return data.StructLayout(
        {
            "row": config.accumulator_address_width,
            "from_accumulators": 1,
            "from_elements": 1,
            "operand": Operand,
            "begins": 1,
            "completes": 1,
            "last": 1,
            "turns": 1,
            "repeat": 2,
        }
    )


class ElementFetcher(wiring.Component):
    """Makes a pass from each step; one that ends a window with a second operand is followed by the operand's pass.

    Rows are requested ahead, in the order of the passes. A pass that needs unified buffer rows is offered when they
    have arrived; others take no bandwidth of the unified buffer.

    Members
    -------
    commands
        See :func:`fetch_layout`; taken with their last step.
    steps
        Steps of an :class:`~openmxu.rtl.common.address_generator.AddressGenerator`.
    rows
        Read port of the unified buffer.
    passes
        See :func:`pass_layout`.
    low, high
        Rows of the offered pass's elements: their bytes, or low and high bytes if they are wide.
    """

    @staticmethod
    def passes_ahead(config: Config) -> int:
        """Passes whose rows are requested ahead: if a pass takes one cycle, enough to cover the buffer's latency."""
        return 8 if config.column_groups > 1 else 10

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
        # A pass enters the queue together with its first request, so that there is room for its rows.
        waiting = data.StructLayout({"content": pass_layout(config), "is_wide": 1})
        m.submodules.queue = queue = BufferedFIFO(waiting, self.passes_ahead(config))
        m.submodules.fetched = fetched = StreamFIFO(
            row_layout(config), 2 * self.passes_ahead(config), always_ready=True
        )
        # Steps left for the newest pass: a queue entry, a request, a second request; all 0 once it has left.
        self._needs = Signal(data.StructLayout({"place": 1, "request": 1, "another": 1}))
        self._fetch(m, self._make_passes(m, waiting), queue)
        m.d.comb += [
            fetched.input.payload.eq(self.rows.response.payload),
            fetched.input.valid.eq(self.rows.response.valid),
        ]

        # The first row of the next pass that needs rows waits in `first` for the pass's turn and for the second row.
        head = queue.output.p
        low, high = (Signal(row_layout(config), name=name, reset_less=True) for name in ("low_row", "high_row"))
        first = Signal(row_layout(config), reset_less=True)
        has_first = Signal()
        content = Signal(pass_layout(config), reset_less=True)
        valid = Signal()
        # The same, for the queue of rows, which is not where the registers of the lanes are that `is_free` loads.
        is_offered = Signal(attrs={"keep": 1})
        is_free = Signal()
        has_rows = Signal()
        needs_row = Signal()
        m.d.comb += [
            self.low.eq(low),
            self.high.eq(high),
            self.passes.payload.eq(content),
            self.passes.valid.eq(valid),
            is_free.eq(~valid | self.passes.ready),
            has_rows.eq(~head.content.from_elements | (has_first & (~head.is_wide | fetched.output.valid))),
            queue.output.ready.eq(is_free & has_rows),
            # A row at the output is the second one of a wide pass, or the first one of a later pass. There is none when
            # the queue is empty: a row comes later than its pass and leaves with it.
            needs_row.eq((~is_offered | self.passes.ready) & head.content.from_elements),
            fetched.output.ready.eq(~has_first | needs_row),
        ]
        with m.If(is_free):
            m.d.sync += [
                *(valid.eq(queue.output.valid & has_rows), is_offered.eq(queue.output.valid & has_rows)),
                content.eq(head.content),
                low.eq(first),
                high.eq(fetched.output.payload),
            ]
        with m.If(fetched.output.ready):
            m.d.sync += has_first.eq(fetched.output.valid ^ (has_first & head.is_wide))
            with m.If(fetched.output.valid):
                m.d.sync += first.eq(fetched.output.payload)
        return m

    def _make_passes(self, m: Module, waiting: data.StructLayout) -> stream.Interface:
        """Make passes, each with the address of its first unified buffer row; the output is registered."""
        config = self._config
        width = config.unified_buffer_address_width
        passes = stream.Signature(data.StructLayout({**waiting.members, "address": width})).create()
        step, command = self.steps.p, self.commands.p
        made = Signal(passes.p.shape(), reset_less=True)
        content = made.content
        has_operand = Signal()
        is_operand = Signal()
        is_free = Signal()
        comes = Signal()
        offset = Signal(width)
        from_elements = Signal()
        is_wide = Signal()
        m.d.comb += [
            passes.payload.eq(made),
            passes.valid.eq(self._needs.place | self._needs.request),
            is_free.eq(passes.ready),
            has_operand.eq(step.ends & (command.operand != Operand.NONE)),
            comes.eq(self.steps.valid & self.commands.valid),
            self.steps.ready.eq(is_free & self.commands.valid & (is_operand | ~has_operand)),
            self.commands.ready.eq(self.steps.valid & self.steps.ready & step.last),
            from_elements.eq(is_operand | (step.inside & command.from_unified_buffer)),
            is_wide.eq(Mux(is_operand, command.operand_wide, command.source_wide)),
        ]
        with m.If(is_free):
            m.d.sync += [
                self._needs.place.eq(comes),
                self._needs.request.eq(comes & from_elements),
                self._needs.another.eq(comes & from_elements & is_wide),
                content.row.eq(step.address),
                content.from_accumulators.eq(step.inside & ~command.from_unified_buffer & ~is_operand),
                content.from_elements.eq(from_elements),
                content.operand.eq(Mux(is_operand, command.operand, Operand.NONE)),
                content.begins.eq(step.begins | is_operand),
                content.completes.eq(step.ends & (is_operand | ~has_operand)),
                content.last.eq(step.last & (is_operand | ~has_operand)),
                content.turns.eq(step.turns),
                content.repeat.eq(step.repeat),
                made.is_wide.eq(from_elements & is_wide),
                made.address.eq(Mux(is_operand, command.operand_address + offset, step.address)),
            ]
        with m.If(is_free & comes):
            m.d.sync += is_operand.eq(has_operand & ~is_operand)
            # All bytes of a result use the same element.
            with m.If(is_operand & (step.repeat == command.repeats)):
                m.d.sync += offset.eq(offset + Mux(command.operand_wide, 2, 1))
                with m.If(step.last):
                    m.d.sync += offset.eq(0)
        return passes

    def _fetch(self, m: Module, passes: stream.Interface, queue: BufferedFIFO) -> None:
        """Request the rows of each pass, which is queued together with its first request."""
        request, needs = self.rows.request, self._needs
        m.d.comb += [
            queue.input.p.content.eq(passes.p.content),
            queue.input.p.is_wide.eq(passes.p.is_wide),
            queue.input.valid.eq(needs.place & (request.ready | ~needs.request)),
            # The second request follows when the pass is in the queue.
            request.payload.eq(passes.p.address + ~needs.place),
            request.valid.eq(needs.request & (queue.input.ready | ~needs.place)),
            passes.ready.eq(
                ~needs.another & (request.ready | ~needs.request) & (queue.input.ready | ~needs.place),
            ),
        ]
        with m.If(request.valid & request.ready & needs.another):
            m.d.sync += [needs.place.eq(0), needs.another.eq(0)]
