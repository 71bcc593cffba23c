"""The target of a build: the family of an FPGA, whose blocks some units instantiate by name."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from amaranth.hdl import Elaboratable
from amaranth.lib import wiring

from openmxu.rtl.verilog.shared_modules import SharedModules

__all__ = ["Family", "Target"]


class Family(enum.Enum):
    """FPGAs with the same blocks."""

    GENERIC = "generic"
    """Any FPGA: tools infer all blocks. Simulations use this family, and the others must behave the same."""

    ECP5 = "ecp5"
    ICE40 = "ice40"
    GOWIN = "gowin"


@dataclass(frozen=True)
class Target:
    """Stands for a platform while hardware is elaborated.

    Parameters
    ----------
    family
        See :class:`Family`.
    array_multipliers
        Number of processing elements that may use a multiplier block, the others multiply in logic; ``None`` for all.
    modules
        The modules that equal components share; ``None`` to elaborate each component by itself.
    """

    family: Family = Family.GENERIC
    array_multipliers: int | None = None
    modules: SharedModules | None = field(default=None, compare=False)

    @classmethod
    def of(cls, platform: object) -> Target:
        """The target of what Amaranth passes to ``elaborate``: a target, or a platform with one as its ``target``.

        Everything else is generic.
        """
        target = platform if isinstance(platform, cls) else getattr(platform, "target", None)
        return target if isinstance(target, cls) else cls()

    def shared(self, component: wiring.Component, *, sleeps: bool = False) -> Elaboratable:
        """What to add as a submodule for one of several equal components.

        With ``sleeps`` they are part of a unit that sleeps in compiled simulations
        (:mod:`openmxu.rtl.simulation.sleeping_units`), where they must not be instances.
        """
        if self.modules is None or (sleeps and self.modules.loops):
            return component
        return self.modules.instance(component, self)
