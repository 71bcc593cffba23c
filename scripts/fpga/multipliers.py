"""Selects the number of processing elements with a multiplier block, if a part has too few for all of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from openmxu.arch.config import Config
from openmxu.rtl.fpga.target import Target
from scripts.fpga.parts import Part

__all__ = ["target_for"]

_MODULE = re.compile(r"^module \\?([^\s(]+)(.*?)^endmodule", re.MULTILINE | re.DOTALL)
_INSTANCE = re.compile(r"^  \\?(\S+) +\\?(\S+) +\($", re.MULTILINE)
_PRODUCT = re.compile(r" \* (?!\d+'h0*[1248]0*;)|^ *(?:MULT18X18D|MULT9X9|MULT18X18|SB_MAC16) ", re.MULTILINE)
"""A statement or cell that takes a multiplier block. A product by a power of two, as in word selects, is only wires."""


def target_for(config: Config, part: Part, verilog: Callable[[Target], str]) -> Target:
    """The target with as many multiplier blocks for the array as the rest of the design leaves.

    Parameters
    ----------
    config
        Sizes of the core.
    part
        The FPGA.
    verilog
        Makes the design's Verilog for a target; it is called if the part may have too few blocks.
    """
    target = Target(part.family)
    if config.size**2 <= part.multipliers // 2:
        return target
    others = _multipliers(verilog(target))
    left = max(0, part.multipliers - others)
    if part.array_sites:
        left = min(left, sum(map(len, part.array_sites)))
    return target if config.size**2 <= left else Target(part.family, array_multipliers=left)


def _multipliers(verilog: str) -> int:
    """Multiplier blocks that a design takes outside its array; its top is the first module."""
    modules = {module[1]: module[2] for module in _MODULE.finditer(verilog)}

    @cache
    def count(name: str) -> int:
        text = modules[name]
        inside = (kind for kind, instance in _INSTANCE.findall(text) if kind in modules and instance != "array")
        return len(_PRODUCT.findall(text)) + sum(map(count, inside))

    return count(next(iter(modules)))
