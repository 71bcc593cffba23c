"""Where tensors lie: regions of them in the unified buffer, and all of each in host memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from openmxu.compiler.emit.tasks import Rows
from openmxu.compiler.ir.network import Tensor

__all__ = ["Buffer", "HostPlace", "Region"]


@dataclass(frozen=True)
class Region:
    """Some images of a batch, and of each of them some rows and columns of every plane.

    ``planes`` are those planes, where they are not all.
    """

    images: range
    rows: range
    columns: range
    planes: range | None = None

    @cached_property
    def positions(self) -> int:
        """Of one plane."""
        return len(self.images) * len(self.rows) * len(self.columns)


@dataclass(frozen=True)
class HostPlace:
    """A tensor in host memory: its address, and the images of each plane there."""

    address: int
    images: int


@dataclass(frozen=True)
class Buffer:
    """A region of a tensor in the unified buffer: plane after plane, in each of them image, row and column.

    Elements are numbered in this order, over all planes. An element takes as many unified buffer rows as it has bytes.

    Attributes
    ----------
    planes
        Their number.
    base
        First unified buffer row.
    first_plane
        The number of the first plane in the tensor; here planes are counted from 0.
    shared
        The tensor is the same for all images, and there only once.
    ring
        Planes that have room at a time, where that is not all of them: plane p takes the place of plane p - ``ring``.
    """

    tensor: Tensor
    planes: int
    region: Region
    base: int
    first_plane: int = field(init=False)
    shared: bool = False
    ring: int = 0

    def __post_init__(self) -> None:
        planes = self.region.planes
        object.__setattr__(self, "first_plane", 0 if planes is None else planes.start)

    @cached_property
    def plane_elements(self) -> int:
        """Elements of one plane."""
        return self.region.positions

    @cached_property
    def elements(self) -> int:
        """Of all planes."""
        return self.planes * self.plane_elements

    @cached_property
    def period(self) -> int:
        """Elements that have room at a time."""
        return self.ring * self.plane_elements or self.elements

    @cached_property
    def width(self) -> int:
        """Columns."""
        return len(self.region.columns)

    def element(self, plane: int, image: int, y: int, x: int) -> int:
        """The number of an element given by its place in the tensor."""
        region = self.region
        index = 0 if self.shared else image - region.images.start
        row = (plane * len(region.images) + index) * len(region.rows) + y - region.rows.start
        return row * self.width + x - region.columns.start

    def rows(self, element: int, count: int = 1) -> Rows:
        """The unified buffer rows of ``count`` elements."""
        return Rows(self.base + element % self.period * self.tensor.item, count * self.tensor.item)

    def _run(self, place: HostPlace) -> int:
        """Elements that follow each other in host memory as they do here."""
        tensor, region = self.tensor, self.region
        if self.width < tensor.width:
            return self.width
        if len(region.rows) < tensor.height:
            return len(region.rows) * self.width
        return self.plane_elements if self.ring or len(region.images) < place.images else self.elements

    def runs(self, start: int, stop: int, place: HostPlace, size: int) -> Iterator[tuple[int, int, int]]:
        """Elements ``start`` up to ``stop`` cut where host memory is not contiguous.

        Yields
        ------
        First element, number of elements, and the host address of the first one.
        """
        run = self._run(place)
        tensor, region = self.tensor, self.region
        while start < stop:
            count = min(stop, (start // run + 1) * run) - start
            row, x = divmod(start, self.width)
            rest, y = divmod(row, len(region.rows))
            plane, image = divmod(rest, len(region.images))
            plane += self.first_plane
            row = (plane * place.images + region.images.start + image) * tensor.height + region.rows.start + y
            position = row * tensor.width + region.columns.start + x
            yield start, count, place.address + position * tensor.item * size
            start += count
