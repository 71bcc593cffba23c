"""Windows over planes: what each output of a convolution or of pooling reads."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Window"]


@dataclass(frozen=True)
class Window:
    """``height`` × ``width`` positions, ``dilation_*`` apart, for outputs ``stride_*`` apart; padding on four sides.

    Negative padding leaves out the rows and columns at the plane's edge.

    Output (y, x) reads position (ky, kx) of its window at plane position
    (y · ``stride_y`` + ky · ``dilation_y`` - ``top``, x · ``stride_x`` + kx · ``dilation_x`` - ``left``).
    """

    height: int = 1
    width: int = 1
    stride_y: int = 1
    stride_x: int = 1
    dilation_y: int = 1
    dilation_x: int = 1
    top: int = 0
    left: int = 0
    bottom: int = 0
    right: int = 0

    @property
    def span_y(self) -> int:
        """Plane rows from the window's first to its last one, both counted."""
        return (self.height - 1) * self.dilation_y + 1

    @property
    def span_x(self) -> int:
        """Plane columns from the window's first to its last one, both counted."""
        return (self.width - 1) * self.dilation_x + 1

    @property
    def is_point(self) -> bool:
        """Whether every output reads the one position where it lies."""
        return self == Window()

    def padded(self, top: int, left: int, bottom: int, right: int) -> Window:
        """The same window with more padding."""
        return Window(
            *(self.height, self.width, self.stride_y, self.stride_x, self.dilation_y, self.dilation_x),
            *(self.top + top, self.left + left, self.bottom + bottom, self.right + right),
        )

    def outputs(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of what comes out of a plane; not positive where the window does not fit."""
        return (
            (height + self.top + self.bottom - self.span_y) // self.stride_y + 1,
            (width + self.left + self.right - self.span_x) // self.stride_x + 1,
        )

    def rows(self, outputs: range, height: int) -> range:
        """The rows of a plane of ``height`` rows that these rows of outputs read: one at least, needed or not."""
        return _inside(outputs, self.stride_y, self.top, self.span_y, height)

    def columns(self, outputs: range, width: int) -> range:
        """The same for columns."""
        return _inside(outputs, self.stride_x, self.left, self.span_x, width)


def _inside(outputs: range, stride: int, padding: int, span: int, length: int) -> range:
    first = min(max(outputs.start * stride - padding, 0), length - 1)
    stop = min(max((outputs.stop - 1) * stride - padding + span, first + 1), length)
    return range(first, stop)
