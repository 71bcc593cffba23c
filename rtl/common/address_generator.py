"""Address generator: walks over planes or plain ranges, one row address per cycle."""

from amaranth.hdl import Cat, Const, Module, Mux, ShapeLike, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.rtl.common.comparison import is_less
from openmxu.rtl.common.register_slice import RegisterSlice
from openmxu.rtl.fpga.carry_chain import chained_sum

__all__ = ["AddressGenerator", "step_layout", "walk_layout"]


def walk_layout(
    *, address_width: int, most_rows: int, most_outputs: int, windows: bool, target_width: int = 0
) -> data.StructLayout:
    """A walk over ``rows`` outputs; at least one.

    Parameters
    ----------
    address_width
        Bits of a row address. Addresses wrap, so that those of positions outside the plane may lie anywhere.
    most_rows
        Largest number of memory rows of a plane.
    most_outputs
        Largest number of outputs of a walk.
    windows
        Whether each output reads a window of positions rather than one.
    target_width
        Bits of an output's destination; without ``windows`` only.

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
        except ``repeats`` and ``target``, then do not matter, but ``stride_x`` must be 1 and the window 1 × 1.
    by_parity
        Without a plane: every other position comes first, then those between them. ``width`` is the number of the
        former, ``stride_x`` is 2, and ``wide`` is 0. With ``windows`` only.
    width
        Outputs in a row of outputs.
    y, x
        Position of the first output in the plane; may be negative, or beyond the plane.
    stride_y, stride_x
        Distance between outputs, in positions.
    pitch
        Positions from one row of outputs to the next one: ``stride_y`` times ``plane_width``, wrapped like addresses.
    plane_height, plane_width
        Positions of the plane.
    window_height, window_width
        Positions of each output; with ``windows`` only.
    repeats
        Number of times that each output's window is walked again: 0 to 3; with ``windows`` only.
    target
        Destination of the first output; the others follow in consecutive places; with ``target_width`` only.
    """
    dimension = range(min(most_rows, 65535) + 1)
    position = signed(17)
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
        members |= {"by_parity": 1, "window_height": 16, "window_width": 16, "repeats": 2}
    if target_width:
        members["target"] = target_width
    return data.StructLayout(members)


def step_layout(walk: data.StructLayout, *, context: ShapeLike | None = None) -> data.StructLayout:
    """One position of a walk of the given layout.

    Members
    -------
    address
        Row of the position, or the first of its two rows.
    inside
        Whether the position lies inside the plane; if not, the address has no meaning.
    last
        The walk's last position.
    begins, ends
        First and last position of an output's window; with ``windows`` only.
    turns
        Behind this output of a walk ``by_parity`` the outputs between the former ones begin; no meaning in the last
        output. With ``windows`` only.
    repeat
        Number of times that the window has been walked before; with ``windows`` only.
    target, first
        Destination of the output; whether the output is the walk's first; with ``target_width`` only.
    context
        Context of the walk, if walks have one.
    """
    members = {"address": walk.members["address"], "inside": 1, "last": 1}
    if "window_height" in walk.members:
        members |= {"begins": 1, "ends": 1, "turns": 1, "repeat": 2}
    if "target" in walk.members:
        members |= {"target": walk.members["target"], "first": 1}
    if context is not None:
        members["context"] = context
    return data.StructLayout(members)


_COUNTS_FROM = 3
"""Initial value of counters: a counter equals the number of columns, or rows, when the one after the next is the last.
The comparison is thus made a step early and ends in a register."""

_POSITION_WIDTH = 18
"""Bits of a position, or of an offset, that grows with outputs."""


def _is_far(position: Value) -> Value:
    """Whether a position lies beyond every plane, wherever the walk begins. Such a position is not incremented further,
    so that it never wraps."""
    return position[-1] & ~position[-2]


def _extended(position: Value) -> Value:
    """A position extended by one bit; far positions become positive."""
    return Cat(position, position[-1] & position[-2])


def _is_below(position: Value, limit: Value) -> Value:
    """Whether a position is at least 0 and below a limit: unsigned, negative positions exceed every limit."""
    return is_less(position.as_unsigned(), limit)


def _fitted(value: Value, width: int) -> Value:
    """An unsigned value, truncated or zero-extended to ``width``."""
    return Cat(value, Const(0, max(0, width - len(value))))[:width]


class AddressGenerator(wiring.Component):
    """Walks row by row over outputs, and for each of them row by row over its window; walk after walk without a gap.

    Parameters
    ----------
    layout
        See :func:`walk_layout`.
    context
        Shape of the data that accompanies each walk, if any.

    Members
    -------
    walks
        A walk is taken when its first position comes next; that position leaves two cycles later at the earliest, four
        with windows.
    context
        Context of the offered walk.
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
        # The ready of `steps` is known late in a cycle.
        m.submodules.steps = steps = RegisterSlice(self.steps.p.shape())
        connect(m, steps.output, flipped(self.steps))
        if self._windows:
            outputs = stream.Signature(self._output_layout()).create()
            self._walk_outputs(m, platform, outputs)
            self._walk_windows(m, platform, outputs, steps.input)
        else:
            self._walk_outputs(m, platform, steps.input)
        return m

    def _output_layout(self) -> data.StructLayout:
        """An output, with all that the walk over its window needs. Its position is reduced by ``_COUNTS_FROM``."""
        walk = self._layout.members
        names = ("address", "wide", "is_plane", "plane_height", "plane_width", "window_height", "window_width")
        others = {"y": _POSITION_WIDTH + 1, "x": _POSITION_WIDTH + 1, "last": 1, "turns": 1}
        others |= dict.fromkeys(("has_one_row", "has_two_rows", "has_one_column", "has_two_columns"), 1)
        return data.StructLayout({name: walk[name] for name in (*names, "repeats")} | others)

    def _walk_outputs(self, m: Module, platform: object, outputs: stream.Interface) -> None:
        """Walk from output to output; without windows, each output is a step."""
        new = self.walks.p
        # A walk's address, number of outputs and first destination are used only when it begins, and so is, without
        # windows, its first row in the plane: no registers keep them.
        asked = ("address", "rows", "target", *(() if self._windows else ("y",)))
        kept = {name: field.shape for name, field in self._layout if name not in asked}
        walk = Signal(data.StructLayout(kept), reset_less=True)
        context = Signal(0 if self._context is None else self._context, reset_less=True)
        by_parity = walk.by_parity if self._windows else Const(0)
        in_rows = new.is_plane | new.by_parity if self._windows else new.is_plane
        valid = Signal()
        moves = Signal()
        # A walk begins next: this is the last output, or there is none.
        begins = Signal(init=1)
        # The next output is the last one.
        nears_end = Signal(reset_less=True)
        rows_left = Signal.like(new.rows, reset_less=True)
        column = Signal.like(new.width, init=_COUNTS_FROM, reset_less=True)
        has_one_column, has_two_columns = (
            Signal(name=name, reset_less=True) for name in ("has_one_column", "has_two_columns")
        )
        # The row of outputs ends with this output; it ends with the next one.
        ends_row = Signal(reset_less=True)
        nears_row_end = Signal(reset_less=True)
        row_address = Signal.like(new.address, name="row_address", reset_less=True)
        column_offset = Signal.like(new.address, name="column_offset", reset_less=True)
        m.d.comb += [
            # While there is no walk, registers load the payload of `walks` even if it is not valid; only `valid` keeps
            # track of that.
            moves.eq(~valid | outputs.ready),
            # A function of only four registers, because its fanout is large.
            self.walks.ready.eq(moves & begins),
        ]
        with m.If(self.walks.ready):
            m.d.sync += [
                valid.eq(self.walks.valid),
                *(walk[name].eq(new[name]) for name in kept),
                has_one_column.eq(new.width == 1),
                has_two_columns.eq(new.width == 2),
            ]
            if self._context is not None:
                m.d.sync += context.eq(self.context)
        left = chained_sum(
            m,
            platform,
            "following_rows_left",
            [rows_left, new.rows, begins],
            first=lambda left, rows, begins: (left & ~begins) | (rows & begins),
            second=lambda left, rows, begins: -1,
        )
        with m.If(moves):
            m.d.sync += [
                rows_left.eq(left),
                # Not from `left`, which is known later in the cycle.
                begins.eq(Mux(begins, ~self.walks.valid | (new.rows == 1), nears_end)),
                nears_end.eq(Mux(begins, new.rows == 2, rows_left == 2)),
                ends_row.eq((walk.is_plane | by_parity) & nears_row_end),
                nears_row_end.eq(column == walk.width),
            ]
            with m.If(ends_row):
                m.d.sync += [ends_row.eq(has_one_column), nears_row_end.eq(has_two_columns)]
            with m.If(ends_row & ~by_parity):
                m.d.sync += row_address.eq(self._add_rows(m, platform, "next_row", row_address, walk.pitch, walk.wide))
            with m.If(begins):
                m.d.sync += [
                    ends_row.eq(in_rows & (new.width == 1)),
                    nears_row_end.eq(new.width == 2),
                    row_address.eq(new.address),
                ]
            with m.If(begins | ends_row):
                m.d.sync += [column.eq(_COUNTS_FROM), column_offset.eq(by_parity & ~begins)]
            with m.Else():
                m.d.sync += [
                    column.eq(column + 1),
                    column_offset.eq(
                        self._add_rows(m, platform, "next_column", column_offset, walk.stride_x, walk.wide)
                    ),
                ]

        payload = outputs.p
        m.d.comb += [
            outputs.valid.eq(valid),
            payload.address.eq(row_address + column_offset),
            payload.last.eq(begins),
        ]
        if self._windows:
            m.d.comb += payload.turns.eq(ends_row & by_parity)
            self._follow_offsets(m, payload, walk, moves, begins, ends_row)
        else:
            self._follow_position(m, payload, walk, moves, begins, ends_row)
        if "target" in self._layout.members:
            self._count_targets(m, platform, payload, moves, begins)
        if self._context is not None:
            m.d.comb += payload.context.eq(context)

    @staticmethod
    def _add_rows(m: Module, platform: object, name: str, address: Value, positions: Value, wide: Value) -> Signal:
        """Add the memory rows of a number of positions, one or two each, to an address."""
        width = len(address)
        return chained_sum(
            m,
            platform,
            name,
            [address, _fitted(positions, width), _fitted(Cat(0, positions), width), ~wide],
            first=lambda address, narrow, wide, is_narrow: address,
            second=lambda address, narrow, wide, is_narrow: (narrow & is_narrow) | (wide & ~is_narrow),
        )

    def _follow_position(
        self, m: Module, step: data.View, walk: data.View, moves: Value, begins: Value, ends_row: Value
    ) -> None:
        """Track the position of each output, and whether it lies inside the plane."""
        new = self.walks.p
        y, x = (Signal(signed(_POSITION_WIDTH), name=name, reset_less=True) for name in ("y", "x"))
        with m.If(moves & (begins | (ends_row & ~_is_far(y)))):
            m.d.sync += y.eq(Mux(begins, new.y, y + walk.stride_y))
        with m.If(moves & (begins | ends_row | ~_is_far(x))):
            m.d.sync += x.eq(Mux(begins, new.x, Mux(ends_row, walk.x, x + walk.stride_x)))
        m.d.comb += step.inside.eq(~walk.is_plane | (_is_below(y, walk.plane_height) & _is_below(x, walk.plane_width)))

    def _follow_offsets(
        self, m: Module, output: data.View, walk: data.View, moves: Value, begins: Value, ends_row: Value
    ) -> None:
        """Track the distance of each output from the first row of outputs, and from the first output of its row."""
        new = self.walks.p
        counts = {
            "has_one_row": new.window_height == 1,
            "has_two_rows": new.window_height == 2,
            "has_one_column": new.window_width == 1,
            "has_two_columns": new.window_width == 2,
        }
        y, x = (
            Signal(signed(_POSITION_WIDTH), name=f"{name}_offset", init=-_COUNTS_FROM, reset_less=True)
            for name in ("y", "x")
        )
        for name, holds in counts.items():
            register = Signal(name=f"window_{name}", reset_less=True)
            with m.If(self.walks.ready):
                m.d.sync += register.eq(holds)
            m.d.comb += output[name].eq(register)
        # A constant becomes the register's synchronous reset if it is also the initial value. It has a condition of its
        # own, without that of the sum, to arrive in time.
        with m.If(moves & ends_row & ~_is_far(y)):
            m.d.sync += y.eq(y + walk.stride_y)
        with m.If(moves & begins):
            m.d.sync += y.eq(-_COUNTS_FROM)
        with m.If(moves & ~_is_far(x)):
            m.d.sync += x.eq(x + walk.stride_x)
        with m.If(moves & (begins | ends_row)):
            m.d.sync += x.eq(-_COUNTS_FROM)
        shared = (name for name, _ in self._output_layout() if name in walk.shape().members and name not in ("y", "x"))
        m.d.comb += [
            *(output[name].eq(walk[name]) for name in shared),
            output.y.eq(walk.y + _extended(y).as_signed()),
            output.x.eq(walk.x + _extended(x).as_signed()),
        ]

    def _count_targets(self, m: Module, platform: object, step: data.View, moves: Value, begins: Value) -> None:
        """Count the destinations of outputs."""
        target = Signal.like(step.target, reset_less=True)
        first = Signal(reset_less=True)
        following = chained_sum(
            m,
            platform,
            "following_target",
            [target, self.walks.p.target, begins],
            first=lambda target, new, begins: (target & ~begins) | (new & begins),
            carry=~begins,
        )
        m.d.comb += [step.target.eq(target), step.first.eq(first)]
        with m.If(moves):
            m.d.sync += [first.eq(begins), target.eq(following)]

    def _walk_windows(self, m: Module, platform: object, outputs: stream.Interface, steps: stream.Interface) -> None:
        """Step through the window of each output, as often as it is repeated."""
        new = outputs.p
        output = Signal(self._output_layout(), name="window", reset_less=True)
        row, column = (
            Signal.like(size, name=f"window_{name}", init=_COUNTS_FROM, reset_less=True)
            for name, size in (("row", new.window_height), ("column", new.window_width))
        )
        row_offset = Signal.like(new.address, name="window_row_offset", reset_less=True)
        is_last_row, nears_last_row, is_last_column, nears_last_column = (
            Signal(name=name, reset_less=True)
            for name in ("is_last_row", "nears_last_row", "is_last_column", "nears_last_column")
        )
        # This is the window's last position; a separate register, because the AND of last column and last row would be
        # too late in the cycle. So is `takes`: the next output is taken, because this position is the last one of the
        # last repeat, or because there is no output.
        ends_window = Signal(reset_less=True)
        next_ends_window = Signal()
        takes = Signal(init=1)
        repeat = Signal(2, reset_less=True)
        next_repeat = Signal(2)
        begins = Signal(reset_less=True)
        valid = Signal()
        # All stages move together when the register slice after them has room; its ready is a register.
        moves = steps.ready
        m.d.comb += outputs.ready.eq(moves & takes)
        with m.If(takes):
            m.d.comb += next_ends_window.eq(new.has_one_row & new.has_one_column)
        with m.Else():
            m.d.comb += next_repeat.eq(repeat + ends_window)
            with m.If(~is_last_column):
                m.d.comb += next_ends_window.eq(nears_last_column & is_last_row)
            with m.Elif(~is_last_row):
                m.d.comb += next_ends_window.eq(nears_last_row & output.has_one_column)
            with m.Else():
                m.d.comb += next_ends_window.eq(output.has_one_row & output.has_one_column)
        with m.If(moves):
            m.d.sync += [
                begins.eq(takes | ends_window),
                ends_window.eq(next_ends_window),
                repeat.eq(next_repeat),
                column.eq(column + 1),
                is_last_column.eq(Mux(is_last_column, output.has_one_column, nears_last_column)),
                nears_last_column.eq(
                    Mux(is_last_column, output.has_two_columns, column == output.window_width),
                ),
            ]
            with m.If(takes | is_last_column):
                m.d.sync += column.eq(_COUNTS_FROM)
            with m.If(is_last_column):
                m.d.sync += [
                    is_last_row.eq(Mux(is_last_row, output.has_one_row, nears_last_row)),
                    nears_last_row.eq(Mux(is_last_row, output.has_two_rows, row == output.window_height)),
                ]
            with m.If(takes):
                m.d.sync += [
                    valid.eq(outputs.valid),
                    output.eq(new),
                    is_last_row.eq(new.has_one_row),
                    nears_last_row.eq(new.has_two_rows),
                    is_last_column.eq(new.has_one_column),
                    nears_last_column.eq(new.has_two_columns),
                    takes.eq(~outputs.valid | (next_ends_window & (new.repeats == 0))),
                ]
            with m.Else():
                m.d.sync += takes.eq(next_ends_window & (next_repeat == output.repeats))
        with m.If(moves & (takes | is_last_column)):
            # `column` is `_COUNTS_FROM` positions too large, of one row each or of two; the row's offset corrects that.
            with m.If(takes | ends_window):
                is_wide = Mux(takes, new.wide, output.wide)
                m.d.sync += [
                    row.eq(_COUNTS_FROM),
                    row_offset.eq(Mux(is_wide, -2 * _COUNTS_FROM, -_COUNTS_FROM)),
                ]
            with m.Else():
                m.d.sync += [
                    row.eq(row + 1),
                    row_offset.eq(
                        self._add_rows(m, platform, "next_window_row", row_offset, output.plane_width, output.wide)
                    ),
                ]

        # Additions for the positions, and their comparisons with the plane, each have a separate stage.
        placed = Signal(
            data.StructLayout(
                {
                    "step": steps.p.shape(),
                    "column": len(steps.p.address),
                    "y": output.y.shape(),
                    "x": output.x.shape(),
                    **{name: self._layout[name].shape for name in ("wide", "is_plane", "plane_height", "plane_width")},
                }
            ),
            reset_less=True,
        )
        placed_valid = Signal()
        step = placed.step
        m.d.comb += [
            steps.valid.eq(placed_valid),
            steps.payload.eq(step),
            steps.p.address.eq(self._add_rows(m, platform, "step_address", step.address, placed.column, placed.wide)),
            steps.p.inside.eq(
                ~placed.is_plane | (_is_below(placed.y, placed.plane_height) & _is_below(placed.x, placed.plane_width))
            ),
        ]
        with m.If(moves):
            m.d.sync += [
                placed_valid.eq(valid),
                step.address.eq(
                    chained_sum(
                        m,
                        platform,
                        "window_address",
                        [output.address, row_offset],
                        first=lambda address, offset: address,
                        second=lambda address, offset: offset,
                    )
                ),
                step.last.eq(output.last & takes),
                step.turns.eq(output.turns),
                step.begins.eq(begins),
                step.ends.eq(ends_window),
                step.repeat.eq(repeat),
                placed.column.eq(column),
                placed.y.eq(output.y + row),
                placed.x.eq(output.x + column),
                *(placed[name].eq(output[name]) for name in ("wide", "is_plane", "plane_height", "plane_width")),
            ]
