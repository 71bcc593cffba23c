"""The multipliers of every family compute the same products in the same cycles as the portable one."""

from __future__ import annotations

from collections.abc import Callable

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from openmxu.rtl.fpga.ecp5_logic_multiplier import Ecp5LogicMultiplier
from openmxu.rtl.fpga.ecp5_multiplier import Ecp5Multiplier
from openmxu.rtl.fpga.ice40_block import sign_and_magnitude
from openmxu.rtl.fpga.ice40_elements import Ice40Elements
from openmxu.rtl.fpga.logic_multiplier import LogicMultiplier
from openmxu.rtl.fpga.multiplier import MAGNITUDE_WIDTH, OPERAND_WIDTH, PRODUCT_WIDTH, Multiplier
from openmxu.rtl.fpga.target import Family, Target
from openmxu.rtl.lite.ice40_multipliers import Ice40Multipliers
from tb.formal.proof import Proof

__all__ = ["Ecp5LogicProduct", "Ecp5Product", "Ice40PartialSums", "Ice40Products", "LogicProduct", "PortableProduct"]

_LARGEST = 2**MAGNITUDE_WIDTH - 1


class _Product(Proof):
    """A multiplier, compared with reference registers of the proof."""

    depth = 1

    def __init__(self, make_unit: Callable[[], Multiplier]) -> None:
        super().__init__(make_unit, make_unit.__name__)

    def state(self, m: Module) -> None:
        unit = self.unit
        activation, weight = Signal(signed(OPERAND_WIDTH)), Signal(signed(OPERAND_WIDTH))
        shall, product = Signal(signed(PRODUCT_WIDTH)), Signal(signed(PRODUCT_WIDTH))
        m.d.sync += [activation.eq(unit.activation), shall.eq(activation * weight)]
        with m.If(unit.load):
            m.d.sync += weight.eq(unit.weight)
        m.d.comb += product.eq(sum(unit.addends))
        self.same_factors(m, activation, weight)
        self.claim(
            m, "the product of an activation and the weight loaded last leaves two cycles later", product == shall
        )
        self.reach(m, product == -255 * 255)

    def same_factors(self, m: Module, activation: Value, weight: Value) -> None:
        """Add lemmas: the unit's registers hold the same factors."""
        self.lemma(m, self.inside("activation") == activation)
        self.lemma(m, self.inside("weight") == weight)


class PortableProduct(_Product):
    """The portable multiplier, written so that tools infer a hardware multiplier."""

    def __init__(self) -> None:
        super().__init__(Multiplier)


class Ecp5Product(_Product):
    """A MULT18X18D whose factors are in the upper bits of its inputs."""

    target = Target(Family.ECP5)
    takes_minutes = True

    def __init__(self) -> None:
        super().__init__(Ecp5Multiplier)

    def same_factors(self, m: Module, activation: Value, weight: Value) -> None:
        for name, factor in (("inputa", activation), ("inputb", weight)):
            self.lemma(m, self.inside(f"block.{name}") == Cat(Const(0, OPERAND_WIDTH), factor))


class LogicProduct(_Product):
    """The multiplier in logic, which adds multiples of the weight."""

    takes_minutes = True

    def __init__(self) -> None:
        super().__init__(LogicMultiplier)

    def same_factors(self, m: Module, activation: Value, weight: Value) -> None:
        super().same_factors(m, activation, weight)
        self.lemma(m, self.inside("triple") == 3 * weight)


class _Magnitudes:
    """Expected output of a multiplier of operands in sign and magnitude, from reference registers of the proof."""

    def __init__(self, proof: Proof, m: Module, name: str, activation: Value, weight: Value, load: Value) -> None:
        self.activation = Signal(OPERAND_WIDTH, name=f"{name}_activation")
        self.weight = Signal(OPERAND_WIDTH, name=f"{name}_weight")
        self.magnitude = Signal(2 * MAGNITUDE_WIDTH, name=f"{name}_magnitude")
        self.is_negative = Signal(name=f"{name}_is_negative")
        m.d.sync += [
            self.activation.eq(activation),
            self.magnitude.eq(self.activation[:MAGNITUDE_WIDTH] * self.weight[:MAGNITUDE_WIDTH]),
            self.is_negative.eq(self.activation[-1] ^ self.weight[-1]),
        ]
        with m.If(load):
            m.d.sync += self.weight.eq(weight)
        proof.lemma(m, self.magnitude <= _LARGEST * _LARGEST)
        proof.reach(m, self.product == -_LARGEST * _LARGEST)

    @property
    def product(self) -> Value:
        """The product with its sign."""
        return Mux(self.is_negative, -self.magnitude, self.magnitude)


class Ecp5LogicProduct(Proof):
    """The multiplier in logic that uses the carry chains of an ECP5."""

    depth = 1
    target = Target(Family.ECP5)
    takes_minutes = True

    def __init__(self) -> None:
        super().__init__(Ecp5LogicMultiplier, "Ecp5LogicMultiplier")

    def state(self, m: Module) -> None:
        unit = self.unit
        shall = _Magnitudes(self, m, "shall", unit.activation, unit.weight, unit.load)
        self.lemma(m, self.inside("activation").as_unsigned() == shall.activation)
        self.lemma(m, self.inside("weight").as_unsigned() == shall.weight)
        low, high = unit.halves
        self.claim(m, "two halves of a magnitude leave two cycles later", low + (high << 4) == shall.magnitude)
        self.claim(m, "their sign leaves with them", unit.negative == shall.is_negative)
        self.claim(m, "the product leaves as two addends", sum(unit.addends) == shall.product)


class Ice40Products(Proof):
    """Two multipliers in one block of an iCE40."""

    depth = 1
    target = Target(Family.ICE40)
    takes_minutes = True

    def __init__(self) -> None:
        super().__init__(Ice40Multipliers, "Ice40Multipliers")

    def state(self, m: Module) -> None:
        unit = self.unit
        operand = self.free("operand", OPERAND_WIDTH).as_signed()
        *_, sign = encoded = sign_and_magnitude(operand)
        magnitude = encoded[:MAGNITUDE_WIDTH]
        self.claim(
            m,
            "an operand from -255 to 255 is its magnitude with its sign",
            (operand < -_LARGEST) | (operand == Mux(sign, -magnitude, magnitude)),
        )
        shall = [
            _Magnitudes(self, m, f"shall_{index}", unit.activations[index], unit.weights[index], unit.load)
            for index in range(2)
        ]
        for index, one in enumerate(shall):
            self.lemma(m, self.inside(f"activation_sign_{index}") == one.activation[-1])
            self.lemma(m, self.inside(f"weight_sign_{index}") == one.weight[-1])
            self.lemma(m, self.inside(f"negative_{index}") == one.is_negative)
            self.claim(
                m,
                "the product of magnitudes, with its sign, leaves two cycles after the activation",
                unit.addends[index] == one.product,
            )
        for name, factors in (("a", [one.activation for one in shall]), ("b", [one.weight for one in shall])):
            held = Cat(factor[:MAGNITUDE_WIDTH] for factor in factors)
            self.lemma(m, self.inside(f"block.factor_{name}") == held)
        self.lemma(m, self.inside("block.product_bot") == shall[0].magnitude)
        self.lemma(m, self.inside("block.product_top") == shall[1].magnitude)


class Ice40PartialSums(Proof):
    """Two processing elements that share one block of an iCE40."""

    depth = 1
    target = Target(Family.ICE40)
    _WIDTH = 20

    def __init__(self) -> None:
        super().__init__(lambda: Ice40Elements(self._WIDTH), "Ice40Elements")

    def state(self, m: Module) -> None:
        for name, half, element in (("upper", "top", self.unit.upper), ("lower", "bot", self.unit.lower)):
            next_weight = Signal(OPERAND_WIDTH, name=f"shall_next_weight_{name}")
            partial_sum = Signal(signed(self._WIDTH), name=f"shall_partial_sum_{name}")
            passed = Signal(2, name=f"shall_pass_{name}")
            shall = _Magnitudes(self, m, f"shall_{name}", element.activation_in, next_weight, element.swap_in)
            m.d.sync += [
                passed.eq(Cat(element.swap_in, element.shift_in)),
                partial_sum.eq(element.partial_sum_in + shall.product),
            ]
            with m.If(element.shift_in):
                m.d.sync += next_weight.eq(element.weight_in)
            self.lemma(m, self.inside(f"weight_{name}") == shall.weight)
            self.lemma(m, self.inside(f"is_negative_{name}") == shall.is_negative)
            self.lemma(m, self.inside(f"block.product_{half}") == shall.magnitude)
            self.claim(
                m,
                "the product of magnitudes, with its sign, is added to the partial sum",
                element.partial_sum_out == partial_sum,
            )
            self.claim(
                m,
                "activations, weights and their signals are passed on as by the portable element",
                (element.activation_out.as_unsigned() == shall.activation)
                & (element.weight_out.as_unsigned() == next_weight)
                & (Cat(element.swap_out, element.shift_out) == passed),
            )
