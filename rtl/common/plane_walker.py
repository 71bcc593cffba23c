"""Plane walker: outputs over a plane, or plain ranges, become row addresses, one per cycle."""

from amaranth.hdl import Const, Module, Mux, ShapeLike, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.rtl.common.comparison import is_less
from openmxu.rtl.common.countdown import Countdown
from openmxu.rtl.common.register_slice import RegisterSlice

__all__ = ["PlaneWalker", "step_layout", "walk_layout"]


def walk_layout(
    *, address_width: int, most_rows: int, most_outputs: int, windows: bool, target_width: int = 0
) -> data.StructLayout:
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
    target_width
        Bits of the place that an output is for; without ``windows`` only.

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
    target
        The place that the first output is for; others are for the places behind it; with ``target_width`` only.
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
    if target_width:
        members["target"] = target_width
    return data.StructLayout(members)


def step_layout(walk: data.StructLayout, *, context: ShapeLike | None = None) -> data.StructLayout:
    """One position of a walk of the given layout.

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
    target, first
        The place that the output is for; whether it is the walk's first; with ``target_width`` only.
    context
        What was given with the walk, if walks have one.
    """
    members = {"address": walk.members["address"], "inside": 1, "last": 1}
    if "window_height" in walk.members:
        members |= {"begins": 1, "ends": 1, "repeat": 2}
    if "target" in walk.members:
        members |= {"target": walk.members["target"], "first": 1}
    if context is not None:
        members["context"] = context
    return data.StructLayout(members)


def _rows(positions: Value, walk: data.View) -> Value:
    """The rows of memory that positions of ``walk`` take."""
    return Mux(walk.wide, positions << 1, positions)


def _is_inside(position: data.View, walk: data.View) -> Value:
    """Whether a position lies inside the plane of its walk."""
    return ~walk.is_plane | (
        is_less(position.y.as_unsigned(), walk.plane_height) & is_less(position.x.as_unsigned(), walk.plane_width)
    )


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
        Taken when their first position comes next; it leaves two cycles later at the earliest, four with
        windows.
    context
        Of the walk that is offered.
    steps
        Positions, see :func:`step_layout`.
    """

    def __init__(self, layout: data.StructLayout, *, context: ShapeLike | None = None) -> None:
        self._layout = layout
        self._context = context
        self._windows = "window_height" in layout.members
        step = step_layout(layout, context=context)
        members = {"walks": In(stream.Signature(layout)), "steps": Out(stream.Signature(step))}
        if context is not None:
            members["context"] = In(context)
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Whoever takes the steps decides late in a cycle whether it does.
        m.submodules.steps = steps = RegisterSlice(self.steps.p.shape())
        connect(m, steps.output, flipped(self.steps))
        if self._windows:
            m.submodules.outputs = outputs = RegisterSlice(self._output_layout())
            self._walk_outputs(m, outputs.input)
            self._walk_windows(m, outputs.output, steps.input)
        else:
            self._walk_outputs(m, steps.input)
        return m

    def _output_layout(self) -> data.StructLayout:
        """An output, with all that the walk over its window needs."""
        walk = self._layout.members
        names = ("address", "y", "x", "wide", "is_plane", "plane_height", "plane_width")
        names += ("window_height", "window_width", "repeats")
        return data.StructLayout({name: walk[name] for name in names} | {"last": 1})

    def _walk_outputs(self, m: Module, outputs: stream.Interface) -> None:
        """One output after the other: steps of their own, or with windows what follows from them."""
        new = self.walks.p
        # Where it begins in y, how many outputs it has, and for which place the first one is, is only asked when it
        # begins.
        kept = {name: field.shape for name, field in self._layout if name not in ("y", "rows", "target")}
        walk = Signal(data.StructLayout(kept), reset_less=True)
        context = Signal(0 if self._context is None else self._context, reset_less=True)
        valid = Signal()
        moves = Signal()
        ends = Signal()
        rows = Countdown(new.rows.shape(), "rows")
        columns = Countdown(walk.width.shape(), "columns")
        # `walk` keeps where the current row of outputs began.
        output = Signal(
            data.StructLayout({name: self._layout.members[name] for name in ("address", "y", "x")}), reset_less=True
        )
        following = Signal.like(output)
        ends_row = Signal()
        m.d.comb += [
            # While there is no walk, registers take whatever stands in `walks`: whether there is one decides over
            # `valid` alone.
            moves.eq(~valid | outputs.ready),
            ends.eq(~valid | rows.last),
            # One look at three registers, which a great many registers wait for.
            self.walks.ready.eq(~valid | (outputs.ready & rows.last)),
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
        with m.If(self.walks.ready):
            m.d.sync += [valid.eq(self.walks.valid), *(walk[name].eq(new[name]) for name in kept if name != "address")]
            if self._context is not None:
                m.d.sync += context.eq(self.context)
        with m.If(moves):
            with m.If(ends):
                m.d.sync += [
                    walk.address.eq(new.address),
                    *rows.start(new.rows),
                    *columns.start(new.width),
                    output.address.eq(new.address),
                    output.y.eq(new.y),
                    output.x.eq(new.x),
                ]
            with m.Else():
                m.d.sync += [*rows.step(), output.eq(following)]
                with m.If(ends_row):
                    m.d.sync += [*columns.start(walk.width), walk.address.eq(following.address)]
                with m.Else():
                    m.d.sync += columns.step()

        payload = outputs.p
        m.d.comb += [outputs.valid.eq(valid), payload.address.eq(output.address), payload.last.eq(rows.last)]
        if self._windows:
            others = (name for name, _ in self._output_layout() if name not in ("address", "y", "x", "last"))
            m.d.comb += [payload.y.eq(output.y), payload.x.eq(output.x)]
            m.d.comb += [payload[name].eq(walk[name]) for name in others]
        else:
            m.d.comb += payload.inside.eq(_is_inside(output, walk))
        if "target" in self._layout.members:
            self._count_targets(m, payload, moves, ends)
        if self._context is not None:
            m.d.comb += payload.context.eq(context)

    def _count_targets(self, m: Module, step: data.View, moves: Value, ends: Value) -> None:
        """Tell the place that each output is for."""
        target, first = Signal.like(step.target, reset_less=True), Signal(reset_less=True)
        m.d.comb += [step.target.eq(target), step.first.eq(first)]
        with m.If(moves):
            m.d.sync += [first.eq(ends), target.eq(Mux(ends, self.walks.p.target, target + 1))]

    def _walk_windows(self, m: Module, outputs: stream.Interface, steps: stream.Interface) -> None:
        """Step through the window of each output, as often as it is repeated."""
        new, step = outputs.p, steps.p
        output = Signal(self._output_layout(), name="window", reset_less=True)
        place = {name: self._layout.members[name] for name in ("address", "y", "x")}
        position = Signal(data.StructLayout(place), reset_less=True)
        row_address = Signal.like(position.address, reset_less=True)
        rows = Countdown(output.window_height.shape(), "window_rows")
        columns = Countdown(output.window_width.shape(), "window_columns")
        repeat = Signal(2, reset_less=True)
        is_last_repeat = Signal(reset_less=True)
        begins = Signal(reset_less=True)
        valid = Signal()
        moves = Signal()
        # Whether this is the window's last position, for which its last column and its last row are too late.
        ends_window = Signal(reset_less=True)
        has_one_column, has_one_row = Signal(reset_less=True), Signal(reset_less=True)
        ends = Signal()
        next_row = Signal.like(row_address)
        m.d.comb += [
            moves.eq(~valid | steps.ready),
            ends.eq(~valid | (ends_window & is_last_repeat)),
            outputs.ready.eq(~valid | (steps.ready & ends_window & is_last_repeat)),
            next_row.eq(row_address + _rows(output.plane_width, output)),
            steps.valid.eq(valid),
            step.address.eq(position.address),
            step.inside.eq(_is_inside(position, output)),
            step.last.eq(output.last & ends_window & is_last_repeat),
            step.begins.eq(begins),
            step.ends.eq(ends_window),
            step.repeat.eq(repeat),
        ]
        with m.If(outputs.ready):
            m.d.sync += [
                valid.eq(outputs.valid),
                output.eq(new),
                has_one_column.eq(new.window_width == 1),
                has_one_row.eq(new.window_height == 1),
            ]
        with m.If(moves):
            with m.If(ends):
                m.d.sync += [
                    *(position[name].eq(new[name]) for name in place),
                    row_address.eq(new.address),
                    *rows.start(new.window_height),
                    *columns.start(new.window_width),
                    repeat.eq(0),
                    is_last_repeat.eq(new.repeats == 0),
                    begins.eq(1),
                    ends_window.eq((new.window_width == 1) & (new.window_height == 1)),
                ]
            with m.Else():
                m.d.sync += begins.eq(ends_window)
                with m.If(~columns.last):
                    m.d.sync += [
                        *columns.step(),
                        ends_window.eq(columns.is_second_last & rows.last),
                        position.address.eq(position.address + _rows(Const(1), output)),
                        position.x.eq(position.x + 1),
                    ]
                with m.Else():
                    m.d.sync += columns.start(output.window_width)
                    with m.If(~rows.last):
                        m.d.sync += [
                            *rows.step(),
                            ends_window.eq(has_one_column & rows.is_second_last),
                            row_address.eq(next_row),
                            position.address.eq(next_row),
                            position.y.eq(position.y + 1),
                            position.x.eq(output.x),
                        ]
                    with m.Else():
                        m.d.sync += [
                            *rows.start(output.window_height),
                            ends_window.eq(has_one_column & has_one_row),
                            *(position[name].eq(output[name]) for name in place),
                            row_address.eq(output.address),
                            repeat.eq(repeat + 1),
                            is_last_repeat.eq(repeat + 1 == output.repeats),
                        ]
