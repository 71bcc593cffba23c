"""Convolutions and matrix products as tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from openmxu.arch.isa import Pooling as PoolingMode
from openmxu.arch.isa import Register
from openmxu.compiler.emit.deferred_activations import Touch
from openmxu.compiler.emit.strip import Strip
from openmxu.compiler.emit.tasks import Rows, WeightTile
from openmxu.compiler.emit.tiles import KernelTiles, Step
from openmxu.compiler.ir.operations import Convolution
from openmxu.compiler.ir.window import Window
from openmxu.compiler.plan.bands import Piece, Section
from openmxu.compiler.plan.buffers import Buffer
from openmxu.compiler.plan.staging import row_cycles

__all__ = ["ConvolutionTasks", "pooling_registers"]

_LONGEST_ROW = (1 << 15) - 1
"""Positions of a row that the signed field ``dx`` of Convolve reaches."""


@dataclass(frozen=True)
class _View:
    """Rows of a buffer as the plane of some Convolve, which differ by the input plane alone.

    Output (y, x) reads position (y · stride_y + dy, x · stride_x + dx) of the plane.

    Attributes
    ----------
    first, count
        Elements of the first input plane.
    sums
        Accumulator rows.
    """

    first: int
    count: int
    sums: int
    registers: Mapping[Register, Mapping[str, int]]
    geometry: Mapping[str, int]


@dataclass(frozen=True)
class _Places:
    """Where some pieces lie in the first input and output plane; in others they lie a plane's elements further on.

    Attributes
    ----------
    inputs
        First and last elements of the input that the pieces need.
    points
        For windows of one position: first element, number of elements, first row of sums; none where input rows are
        not contiguous.
    stacks
        As in :meth:`ConvolutionTasks._stacks`, where there are no points.
    views
        Of the stacks, by the kernel position; they are found once for all input planes and output tiles.
    """

    pieces: tuple[Piece, ...]
    inputs: tuple[tuple[int, int], ...]
    points: tuple[tuple[int, int, int], ...]
    stacks: tuple[tuple[Piece, int], ...]
    views: dict[tuple[int, int], tuple[_View, ...]] = field(default_factory=dict)


class _Parts:
    """The pieces of a section, so many at a time; found once for all steps."""

    def __init__(self, places: Callable[[tuple[Piece, ...]], _Places], pieces: tuple[Piece, ...]) -> None:
        self._places, self._pieces = places, pieces
        self._found: dict[int, list[tuple[_Places, int]]] = {}

    def of(self, size: int) -> list[tuple[_Places, int]]:
        """Parts of ``size`` pieces, of all of them for 0, each with its first row of sums."""
        if size not in self._found:
            parts, offset = [], 0
            for start in range(0, len(self._pieces), size or len(self._pieces)):
                places = self._places(self._pieces[start : start + (size or len(self._pieces))])
                parts.append((places, offset))
                offset += sum(piece.positions for piece in places.pieces)
            self._found[size] = parts
        return self._found[size]


@dataclass(frozen=True)
class ConvolutionTasks:
    """Makes the tasks of one convolution for the bands of a strip.

    A band of input rows is a plane of its own to the hardware: it begins with the first row that the band's windows
    touch and has as many rows as they need. So an instruction waits only for those rows to be read.

    Parameters
    ----------
    index
        The operation's number.
    tiles
        Its weights; the first one's number in weight memory is ``first_tile``.
    """

    index: int
    operation: Convolution
    tiles: KernelTiles
    first_tile: int
    strip: Strip

    @property
    def _source(self) -> Buffer:
        return self.strip.buffers[self.operation.sources[0]]

    @property
    def _target(self) -> Buffer:
        return self.strip.buffers[self.operation.target]

    @property
    def _input_registers(self) -> Mapping[Register, Mapping[str, int]]:
        """How input bytes are read; instructions themselves say so of int16."""
        if self._source.tensor.is_wide:
            return {}
        return {Register.INPUT_FORMAT: {"signed": self.operation.input_signed, "zero_point": self.operation.zero_point}}

    def section(self, section: Section) -> None:
        """Sum up some output tiles of some pieces side by side, then activate and write them."""
        machine, pieces = self.strip.machine, section.pieces
        machine.tasks.layer = self.index
        count = sum(piece.positions for piece in pieces)
        sums = {tile: machine.take_sums(count) for tile in section.tiles}
        parts = _Parts(self._places, pieces)
        steps = list(self.tiles.steps(section.tiles))
        numbers = self.tiles.numbers(section.tiles)
        # The first tiles come first, and what they read stays, if it has room and is all that the others need.
        is_read_here = section.tiles.start == 0 or self._source.ring > 0 or self.operation.groups > 1
        ends = {step.tile: number for number, step in enumerate(steps)}
        plane, begun = -1, set[int]()
        for number, step in enumerate(steps):
            if number == self._parameters_at(section, len(steps)):
                machine.parameters.require(self.index, section.tiles[0])
            reads = step.plane != plane and is_read_here
            is_first, is_last = number == 0, number == ends[step.tile]
            size = section.startup if is_first and section.startup else section.chunk if reads or is_last else 0
            accumulate = step.tile in begun
            place = self.first_tile + numbers[number]
            planes = self._read_together(step.plane, section) if reads else range(0)
            self._step(parts.of(size), sums[step.tile], step, place, planes, accumulate=accumulate)
            plane = step.plane
            begun.add(step.tile)
        for tile in section.tiles:
            for places, offset in parts.of(section.chunk):
                self._activate(places.pieces, sums[tile] + offset, tile)

    def _parameters_at(self, section: Section, steps: int) -> int:
        """The step before which parameters are read: behind all that a program's first sums need to be read."""
        if section.parameters_first:
            return 0
        last = steps - len(section.tiles)
        if not section.startup:
            return last
        # Reading is over when the array has done as much of the section as reading is faster.
        return min(last, -(-steps * row_cycles(self.strip.config) // len(section.tiles)))

    def _step(
        self,
        parts: Sequence[tuple[_Places, int]],
        sums: int,
        step: Step,
        number: int,
        planes: range,
        *,
        accumulate: bool,
    ) -> None:
        """One kernel position and tile, part by part, each as soon as its rows of ``planes`` have been read; ``number``
        is the tile's place in weight memory. The first part takes the tile."""
        tile: WeightTile | None = WeightTile(number, self.tiles.format)
        for places, offset in parts:
            if planes:
                self._load(places, planes)
            self._sum(places, sums + offset, step, tile, accumulate)
            tile = None

    def touch(self, section: Section) -> Touch:
        """The rows that the tasks of a section touch."""
        source, target = self._source, self._target
        reads, writes = [], []
        for piece in section.pieces:
            for plane in range(source.planes):
                rows, first = self._input_rows(piece, plane)
                reads.append((self.operation.sources[0], first, len(rows) * source.width))
            for tile in section.tiles:
                first = target.element(tile, piece.image, piece.target_rows.start, piece.target_columns.start)
                writes.append((self.operation.target, first, piece.results))
        return self.strip.touch(reads, writes)

    def _places(self, pieces: tuple[Piece, ...]) -> _Places:
        is_point = self.operation.window.is_point and all(self._is_contiguous(piece) for piece in pieces)
        return _Places(
            pieces=pieces,
            inputs=tuple(self._inputs(pieces)),
            points=tuple(_runs(self._source, pieces)) if is_point else (),
            stacks=() if is_point else tuple(self._stacks(pieces)),
        )

    def _inputs(self, pieces: tuple[Piece, ...]) -> Iterator[tuple[int, int]]:
        """Elements of a plane that pieces need, from the first one up to the last one; single ones are joined."""
        start = stop = 0
        for piece in pieces:
            rows, first = self._input_rows(piece, 0)
            count = len(rows) * self._source.width
            if first != stop or count > 1:
                yield start, stop
                start = first
            stop = first + count
        yield start, stop

    def _load(self, places: _Places, planes: range) -> None:
        """Read what pieces need of some planes, those that are read whole together."""
        length = self._source.plane_elements
        first = planes.start * length
        for start, stop in places.inputs:
            others = (len(planes) - 1) * length if (start, stop) == (0, length) else 0
            self.strip.need(self.operation.sources[0], first + start, first + stop + others)

    def _read_together(self, plane: int, section: Section) -> range:
        """A plane and those that are read with it: the first one comes alone, others with their group. In a ring they
        would take the place of planes that are still needed."""
        group = 1 if self._source.ring or plane == 0 else section.planes
        return range(plane, min(self._source.planes, plane + group - (plane - 1) % group))

    def _input_rows(self, piece: Piece, plane: int) -> tuple[range, int]:
        """The input rows that a piece needs, and the first element of them in a plane."""
        rows = self.operation.window.rows(piece.rows, self._source.tensor.height)
        return rows, self._source.element(plane, piece.image, rows.start, self._source.region.columns.start)

    def _sum(
        self,
        places: _Places,
        sums: int,
        step: Step,
        next_tile: WeightTile | None,
        accumulate: bool,
    ) -> None:
        """One kernel position and tile; the tile is taken by the first instruction and used again by the others."""
        tasks = self.strip.machine.tasks
        for start, count, row in places.points:
            tasks.multiply(
                source=self._source.rows(step.plane * self._source.plane_elements + start, count),
                accumulators=Rows(sums + row, count),
                accumulate=accumulate,
                tile=next_tile,
                registers=self._input_registers,
                wide=self._source.tensor.is_wide,
            )
            next_tile = None
        for view in self._views(places, step):
            tasks.convolve(
                source=self._source.rows(step.plane * self._source.plane_elements + view.first, view.count),
                accumulators=Rows(sums, view.sums),
                accumulate=accumulate,
                tile=next_tile,
                registers=view.registers,
                wide=self._source.tensor.is_wide,
                **view.geometry,
            )
            sums += view.sums
            next_tile = None

    def _views(self, places: _Places, step: Step) -> tuple[_View, ...]:
        position = step.ky, step.kx
        if position not in places.views:
            places.views[position] = tuple(
                self._stack_view(piece, images, step) if images > 1 else self._view(piece, step)
                for piece, images in places.stacks
            )
        return places.views[position]

    def _view(self, piece: Piece, step: Step) -> _View:
        """The rows that a piece's windows touch as a plane."""
        window, source = self.operation.window, self._source
        rows, first = self._input_rows(piece, 0)
        dy = piece.rows.start * window.stride_y + step.ky * window.dilation_y - window.top - rows.start
        return _View(
            first=first,
            count=len(rows) * source.width,
            sums=piece.positions,
            registers=self._plane(len(rows), source.width, window.stride_y),
            geometry={
                "height": len(piece.rows),
                "width": len(piece.columns),
                "dy": dy,
                "dx": self._first_column(piece) + step.kx * window.dilation_x,
            },
        )

    def _stack_view(self, piece: Piece, images: int, step: Step) -> _View:
        """The planes of some images as one plane that has an image in each row."""
        window, source, region = self.operation.window, self._source, self._source.region
        width = len(region.rows) * source.width
        row = piece.rows.start * window.stride_y + step.ky * window.dilation_y - window.top - region.rows.start
        return _View(
            first=source.element(0, piece.image, region.rows.start, region.columns.start),
            count=images * width,
            sums=images * piece.positions,
            registers=self._plane(images, width, stride_y=1),
            geometry={
                "height": images,
                "width": len(piece.columns),
                "dy": 0,
                "dx": row * source.width + self._first_column(piece) + step.kx * window.dilation_x,
            },
        )

    def _plane(self, height: int, width: int, stride_y: int) -> Mapping[Register, Mapping[str, int]]:
        return {
            **self._input_registers,
            Register.CONVOLUTION_PLANE: {
                "height": height,
                "width": width,
                "stride_y": stride_y,
                "stride_x": self.operation.window.stride_x,
            },
        }

    def _first_column(self, piece: Piece) -> int:
        """The column, counted in the strip's buffer, in which the window of a piece's first output begins."""
        window = self.operation.window
        return piece.columns.start * window.stride_x - window.left - self._source.region.columns.start

    def _stacks(self, pieces: tuple[Piece, ...]) -> Iterator[tuple[Piece, int]]:
        """Pieces, each with the number of images that one instruction can do: the piece's own and those behind it.

        There can be several where each image has one row of outputs and no window reaches into the padding.
        """
        waiting = list(pieces)
        while waiting:
            first, images = waiting[0], 1
            while images < len(waiting) and self._is_alike(first, waiting[images], images):
                images += 1
            yield first, images
            del waiting[:images]

    def _is_alike(self, first: Piece, other: Piece, images: int) -> bool:
        """Whether another piece is the same part of the image ``images`` further on, in a plane of such images."""
        window, region, width = self.operation.window, self._source.region, self._source.width
        top = first.rows.start * window.stride_y - window.top
        left, last = self._first_column(first), (len(first.columns) - 1) * window.stride_x + window.span_x
        return (
            other.image == first.image + images
            and (other.rows, other.columns) == (first.rows, first.columns)
            and len(first.rows) == 1
            and region.rows.start <= top
            and top + window.span_y <= region.rows.stop
            and left >= 0
            and left + last <= width
            and len(region.rows) * width <= _LONGEST_ROW
        )

    def _is_contiguous(self, piece: Piece) -> bool:
        """Whether the input of a piece for a window of one position is a run of elements."""
        return len(piece.rows) == 1 or len(piece.columns) == self._source.width

    def _activate(self, pieces: tuple[Piece, ...], sums: int, tile: int) -> None:
        pooling = self.operation.pooling
        if pooling is None:
            first = tile * self._target.plane_elements
            for start, count, row in _runs(self._target, pieces):
                self.strip.activate(
                    self.index,
                    self.operation,
                    tile,
                    first + start,
                    count,
                    source=Rows(sums + row, count),
                    from_unified_buffer=False,
                )
            return
        for piece in pieces:
            self.strip.activate(
                self.index,
                self.operation,
                tile,
                self._target.element(tile, piece.image, piece.target_rows.start, piece.target_columns.start),
                piece.results,
                source=Rows(sums, piece.positions),
                from_unified_buffer=False,
                positions=pooling.height * pooling.width,
                registers=pooling_registers(
                    pooling, piece.rows, piece.columns, piece.target_rows, piece.target_columns
                ),
                pooling=PoolingMode.MAX,
            )
            sums += piece.positions


def _runs(buffer: Buffer, pieces: tuple[Piece, ...]) -> Iterator[tuple[int, int, int]]:
    """The positions of pieces that follow each other in a plane of a buffer: first element, number, first sum."""
    first = count = done = 0
    for piece in pieces:
        element = buffer.element(0, piece.image, piece.rows.start, piece.columns.start)
        if count and element != first + count:
            yield first, count, done
            done, count = done + count, 0
        if count == 0:
            first = element
        count += piece.positions
    yield first, count, done


def pooling_registers(
    window: Window, rows: range, columns: range, target_rows: range, target_columns: range
) -> Mapping[Register, Mapping[str, int]]:
    """Pooling of ``rows`` × ``columns`` of a plane into ``target_rows`` × ``target_columns``."""
    return {
        Register.POOLING_WINDOW: {
            "height": window.height,
            "width": window.width,
            "stride_y": window.stride_y,
            "stride_x": window.stride_x,
            "pad_top": rows.start + window.top - target_rows.start * window.stride_y,
            "pad_left": columns.start + window.left - target_columns.start * window.stride_x,
        },
        Register.POOLING_PLANE: {"height": len(rows), "width": len(columns), "output_width": len(target_columns)},
    }
