"""The target of a build: the family of an FPGA, whose blocks some units instantiate by name."""

from __future__ import annotations

import enum
from dataclasses import dataclass

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
    """

    family: Family = Family.GENERIC
    array_multipliers: int | None = None

    @classmethod
    def of(cls, platform: object) -> Target:
        """The target of what Amaranth passes to ``elaborate``: a target, or a platform with one as its ``target``.

        Everything else is generic.
        """
        target = platform if isinstance(platform, cls) else getattr(platform, "target", None)
        return target if isinstance(target, cls) else cls()
