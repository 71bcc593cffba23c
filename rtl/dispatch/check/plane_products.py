"""Plane products: the few multiplications that Convolve and pooling need before they start, on one multiplier."""

from amaranth.hdl import Array, Cat, Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from openmxu.rtl.fpga.product import Product

__all__ = ["PlaneFactors", "PlaneProducts"]


class PlaneFactors(data.Struct):
    """Sizes of a plane, row of the first output's position, vertical stride."""

    height: 16
    width: 16
    y: signed(17)
    stride_y: 8


class PlaneProducts(wiring.Component):
    """Multiplies one pair after the other, a cycle each.

    Parameters
    ----------
    address_width
        Bits of a row address, which wraps.

    Members
    -------
    start
        Begin; the factors must be stable until ``done``.
    convolves
        The factors are those of ``convolution`` rather than of ``pooling``.
    convolution, pooling
        See :class:`PlaneFactors`.
    output_height, output_width
        Outputs of a convolution.
    done
        Nothing is being multiplied; the last product follows a cycle later.
    has_positions, has_outputs
        In this cycle ``product`` is the number of positions of the plane; the number of outputs of a convolution. Each
        is set once before ``done``.
    product
        The product named by ``has_positions`` or ``has_outputs``.
    first_row
        Positions before row ``y`` of the plane: ``y`` times the width, wrapped like addresses. From ``done`` on.
    pitch
        Positions from one row of outputs to the next one: ``stride_y`` times the width, wrapped like addresses. From
        the cycle after ``done`` on.
    """

    def __init__(self, address_width: int) -> None:
        super().__init__(
            {
                "start": In(1),
                "convolves": In(1),
                "convolution": In(PlaneFactors),
                "pooling": In(PlaneFactors),
                "output_height": In(16),
                "output_width": In(16),
                "done": Out(1, init=1),
                "has_positions": Out(1),
                "has_outputs": Out(1),
                "product": Out(32),
                "first_row": Out(address_width),
                "pitch": Out(address_width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = len(self.first_row)
        firsts, seconds = [], []
        for factors in (self.pooling, self.convolution):
            # The first row comes first: two sums depend on it. This product and the last one wrap.
            firsts += [factors.y[:bits], factors.height, self.output_height, factors.stride_y]
            seconds += [factors.width, factors.width, self.output_width, factors.width]
        pair = Signal(2)
        # Bit i of each stage: pair i is in it.
        selected, multiplied, stored, moved = (
            Signal(4, name=name) for name in ("selected", "multiplied", "stored", "moved")
        )
        first = Signal(signed(17), reset_less=True)
        second = Signal(signed(17), reset_less=True)
        product = Signal(32, reset_less=True)
        m.submodules.multiplier = multiplier = Product(signed(17), signed(17))
        choice = Cat(pair, self.convolves)
        m.d.sync += [
            first.eq(Array(firsts)[choice]),
            second.eq(Array(seconds)[choice]),
            selected.eq(Cat(self.start, selected[:-1])),
            multiplied.eq(selected),
            stored.eq(multiplied),
            moved.eq(stored),
            # Blocks of multipliers lie in few rows of an FPGA: the way from there takes a cycle of its own.
            product.eq(multiplier.product),
        ]
        with m.If(~self.done):
            m.d.sync += pair.eq(pair + 1)
        with m.If(self.start):
            m.d.sync += [pair.eq(0), self.done.eq(0)]
        with m.Elif(stored[-1]):
            m.d.sync += self.done.eq(1)
        m.d.comb += [
            multiplier.first.eq(first),
            multiplier.second.eq(second),
            self.product.eq(product),
            self.has_positions.eq(moved[1]),
            self.has_outputs.eq(moved[2]),
        ]
        for is_moved, result in ((moved[0], self.first_row), (moved[3], self.pitch)):
            with m.If(is_moved):
                m.d.sync += result.eq(product)
        return m
