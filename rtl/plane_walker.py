"""Plane walker: outputs over a plane, or plain ranges, become row addresses, one per cycle."""

from amaranth.hdl import Const, Module, Mux, ShapeLike, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.rtl.countdown import Countdown
from openmxu.rtl.register_slice import RegisterSlice

__all__ = ["PlaneWalker", "step_layout", "walk_layout"]


def walk_layout(*, address_width: int, most_rows: int, most_outputs: int, windows: bool) -> data.StructLayout:
    """A walk over ``rows`` outputs; at least one.

    Parameters
    ----------
    address_width
        Bits of a row address. Addresses wrap, so that those of positions outside the plane may lie anywhere.
    most_rows
        No plane has more rows of memory.
    most_outputs
        No walk has more outputs.
    windows
        Whether each output reads a window of positions rather than one.

    Members
    -------
    address
        Row of the first output's (first) position.
    rows
        Outputs.
    wide
        Positions are two rows apart in memory rather than one.
    is_plane
        Whether there is a plane; if not, outputs are consecutive positions and all of them inside. The members below,
        except those of the repeats, then do not matter, but ``stride_x`` must be 1 and the window 1 × 1.
    width
        Outputs in a row of outputs.
    y, x
        Position of the first output in the plane: may be negative, or beyond it.
    stride_y, stride_x
        Distance of outputs in positions.
    pitch
        Positions from one row of outputs to the next one: ``stride_y`` times ``plane_width``, modulo the addresses.
    plane_height, plane_width
        Positions of the plane.
    window_height, window_width
        Positions of each output; with ``windows`` only.
    repeats
        How many times more each output's window is walked: 0 to 3; with ``windows`` only.
    """
    dimension = range(most_rows + 1)
    # The last output lies up to 255 positions behind the first one for each output before it. Seen as unsigned numbers,
    # negative positions lie behind every plane.
    position = signed(max(17, most_outputs.bit_length() + 8, most_rows.bit_length()) + 1)
    members = {
        "address": address_width,
        "rows": range(most_outputs + 1),
        "wide": 1,
        "is_plane": 1,
        "width": range(most_outputs + 1) if not windows else 16,
        "y": position,
        "x": position,
        "stride_y": 8,
        "stride_x": 8,
        "pitch": address_width,
        "plane_height": dimension,
        "plane_width": dimension,
    }
    if windows:
        members |= {"window_height": 16, "window_width": 16, "repeats": 2}
    return data.StructLayout(members)


def step_layout(address_width: int, *, windows: bool, context: ShapeLike | None = None) -> data.StructLayout:
    """One position of a walk.

    Members
    -------
    address
        Its row, or the first of its two rows.
    inside
        Whether it lies inside the plane; if not, the address means nothing.
    last
        The walk's last position.
    begins, ends
        First and last position of an output's window; with ``windows`` only.
    repeat
        How many times the window has been walked before; with ``windows`` only.
    context
        What was given with the walk, if walks have one.
    """
    members = {"address": address_width, "inside": 1, "last": 1}
    if windows:
        members |= {"begins": 1, "ends": 1, "repeat": 2}
    if context is not None:
        members["context"] = context
    return data.StructLayout(members)


def _rows(positions: Value, walk: data.View) -> Value:
    """The rows of memory that positions of ``walk`` take."""
    return Mux(walk.wide, positions << 1, positions)


class PlaneWalker(wiring.Component):
    """Walks row by row over outputs, and for each of them row by row over its window; walk after walk without a gap.

    Parameters
    ----------
    layout
        See :func:`walk_layout`.
    context
        Shape of what goes with each walk, if anything does.

    Members
    -------
    walks
        Taken when their first position comes next; it leaves two cycles later at the earliest.
    context
        Of the walk that is offered.
    steps
        Positions, see :func:`step_layout`.
    """

    def __init__(self, layout: data.StructLayout, *, context: ShapeLike | None = None) -> None:
        self._layout = layout
        self._context = context
        self._windows = "window_height" in layout.members
        step = step_layout(layout.members["address"], windows=self._windows, context=context)
        members = {"walks": In(stream.Signature(layout)), "steps": Out(stream.Signature(step))}
        if context is not None:
            members["context"] = In(context)
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        new = self.walks.p
        # Where it begins in y, and how many outputs it has, is only asked when it begins.
        kept = {name: field.shape for name, field in self._layout if name not in ("y", "rows")}
        walk = Signal(data.StructLayout(kept), reset_less=True)
        valid = Signal()
        proceeds = Signal()
        finishes = Signal()
        # Whoever takes the steps decides late in a cycle whether it does.
        m.submodules.steps = steps = RegisterSlice(self.steps.p.shape())
        connect(m, steps.output, flipped(self.steps))

        # The output that is walked; `walk` keeps where the current row of outputs began.
        context = Signal(0 if self._context is None else self._context, reset_less=True)
        rows = Countdown(new.rows.shape(), "rows")
        columns = Countdown(walk.width.shape(), "columns")
        output = Signal(
            data.StructLayout({name: self._layout.members[name] for name in ("address", "y", "x")}), reset_less=True
        )
        following = Signal.like(output)
        ends_row = Signal()
        m.d.comb += [
            proceeds.eq(valid & steps.input.ready),
            self.walks.ready.eq(~valid | (steps.input.ready & finishes)),
            ends_row.eq(walk.is_plane & columns.last),
        ]
        with m.If(ends_row):
            m.d.comb += [
                following.address.eq(walk.address + _rows(walk.pitch, walk)),
                following.y.eq(output.y + walk.stride_y),
                following.x.eq(walk.x),
            ]
        with m.Else():
            m.d.comb += [
                following.address.eq(output.address + _rows(walk.stride_x, walk)),
                following.y.eq(output.y),
                following.x.eq(output.x + walk.stride_x),
            ]

        step = steps.input.p
        if self._windows:
            position, output_done = self._walk_window(m, walk, output, following, proceeds, step)
        else:
            position, output_done = output, 1
        m.d.comb += finishes.eq(output_done & rows.last)

        with m.If(self.walks.valid & self.walks.ready):
            m.d.sync += [
                valid.eq(1),
                *(walk[name].eq(new[name]) for name in kept),
                *rows.start(new.rows),
                *columns.start(new.width),
                output.address.eq(new.address),
                output.y.eq(new.y),
                output.x.eq(new.x),
            ]
            if self._windows:
                m.d.sync += [position.address.eq(new.address), position.y.eq(new.y), position.x.eq(new.x)]
            if self._context is not None:
                m.d.sync += context.eq(self.context)
        with m.Elif(proceeds & finishes):
            m.d.sync += valid.eq(0)
        with m.Elif(proceeds & output_done):
            m.d.sync += [*rows.step(), output.eq(following)]
            with m.If(ends_row):
                m.d.sync += [*columns.start(walk.width), walk.address.eq(following.address)]
            with m.Else():
                m.d.sync += columns.step()

        m.d.comb += [
            steps.input.valid.eq(valid),
            step.address.eq(position.address),
            step.inside.eq(
                ~walk.is_plane
                | ((position.y.as_unsigned() < walk.plane_height) & (position.x.as_unsigned() < walk.plane_width))
            ),
            step.last.eq(finishes),
        ]
        if self._context is not None:
            m.d.comb += step.context.eq(context)
        return m

    def _walk_window(
        self, m: Module, walk: data.View, output: data.View, following: data.View, proceeds: Signal, step: data.View
    ) -> tuple[data.View, Signal]:
        """Step through the window of each output, as often as it is repeated."""
        position = Signal.like(output, name="position", reset_less=True)
        row_address = Signal.like(output.address, reset_less=True)
        rows = Countdown(walk.window_height.shape(), "window_rows")
        columns = Countdown(walk.window_width.shape(), "window_columns")
        repeat = Signal(2)
        is_last_repeat = Signal()
        begins = Signal()
        ends_window, output_done = Signal(), Signal()
        next_row = Signal.like(row_address)
        m.d.comb += [
            ends_window.eq(columns.last & rows.last),
            output_done.eq(ends_window & is_last_repeat),
            next_row.eq(row_address + _rows(walk.plane_width, walk)),
            step.begins.eq(begins),
            step.ends.eq(ends_window),
            step.repeat.eq(repeat),
        ]
        with m.If(proceeds):
            m.d.sync += begins.eq(ends_window)
            with m.If(~columns.last):
                m.d.sync += [
                    *columns.step(),
                    position.address.eq(position.address + _rows(Const(1), walk)),
                    position.x.eq(position.x + 1),
                ]
            with m.Else():
                m.d.sync += columns.start(walk.window_width)
                with m.If(~rows.last):
                    m.d.sync += [
                        *rows.step(),
                        row_address.eq(next_row),
                        position.address.eq(next_row),
                        position.y.eq(position.y + 1),
                        position.x.eq(output.x),
                    ]
                with m.Else():
                    next_repeat = Mux(is_last_repeat, 0, repeat + 1)[:2]
                    m.d.sync += [
                        *rows.start(walk.window_height),
                        repeat.eq(next_repeat),
                        is_last_repeat.eq(next_repeat == walk.repeats),
                        position.eq(Mux(is_last_repeat, following, output)),
                        row_address.eq(Mux(is_last_repeat, following.address, output.address)),
                    ]
        with m.If(self.walks.valid & self.walks.ready):
            new = self.walks.p
            m.d.sync += [
                begins.eq(1),
                repeat.eq(0),
                is_last_repeat.eq(new.repeats == 0),
                *rows.start(new.window_height),
                *columns.start(new.window_width),
                row_address.eq(new.address),
            ]
        return position, output_done
