"""Plane products: the few multiplications that Convolve and pooling need before they start, on one multiplier."""

from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from openmxu.rtl.fpga.product import Product

__all__ = ["PlaneFactors", "PlaneProducts"]


class PlaneFactors(data.Struct):
    """Sizes of a plane and of its outputs, row of the first output's position, vertical stride."""

    height: 16
    width: 16
    output_height: 16
    output_width: 16
    y: signed(17)
    stride_y: 8


class PlaneProducts(wiring.Component):
    """Multiplies one pair after the other, a cycle each.

    Members
    -------
    start
        Begin; ``factors`` must stay until ``done``.
    factors
        See :class:`PlaneFactors`.
    done
        Nothing is being multiplied: the products below are those of the ``factors`` at the last ``start``.
    positions, outputs
        Positions of the plane; outputs.
    first_row
        Positions before row ``y`` of the plane: ``y`` times the width.
    pitch
        Positions from one row of outputs to the next one: ``stride_y`` times the width.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(1),
                "factors": In(PlaneFactors),
                "done": Out(1, init=1),
                "positions": Out(32),
                "outputs": Out(32),
                "first_row": Out(signed(33)),
                "pitch": Out(24),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        factors = self.factors
        pairs = (
            (factors.height, factors.width, self.positions),
            (factors.output_height, factors.output_width, self.outputs),
            (factors.y, factors.width, self.first_row),
            (factors.stride_y, factors.width, self.pitch),
        )
        # Bit i of each stage: pair i is in it.
        selected = Signal(len(pairs))
        multiplied = Signal(len(pairs))
        stored = Signal(len(pairs))
        first = Signal(signed(17), reset_less=True)
        second = Signal(signed(17), reset_less=True)
        m.submodules.multiplier = multiplier = Product(signed(17), signed(17))
        m.d.comb += [multiplier.first.eq(first), multiplier.second.eq(second)]
        m.d.sync += [selected.eq(selected << 1), multiplied.eq(selected), stored.eq(multiplied)]
        with m.If(self.start):
            m.d.sync += [selected.eq(1), self.done.eq(0)]
        with m.Elif(stored[-1]):
            m.d.sync += self.done.eq(1)
        for index, (one, other, result) in enumerate(pairs):
            with m.If(selected[index]):
                m.d.sync += [first.eq(one), second.eq(other)]
            with m.If(stored[index]):
                m.d.sync += result.eq(multiplier.product)
        return m
