"""What a core's parameters cost: logic cells, flip-flops, multipliers and blocks of memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scripts.fpga.units import logic_cells

__all__ = ["Price", "line", "table"]

_HEADER = """\
| parameter | value | logic cells | flip-flops | multipliers | block RAM |
| --- | --- | ---: | ---: | ---: | ---: |
"""


class Price(NamedTuple):
    """What a netlist of an ECP5 takes."""

    logic: int
    flip_flops: int
    multipliers: int
    block_rams: int

    @classmethod
    def of(cls, types: Mapping[str, int]) -> Price:
        """The price of so many cells of each type."""
        kinds = ("TRELLIS_FF", "MULT18X18D", "DP16KD")
        return cls(logic_cells(types), *(types.get(kind, 0) for kind in kinds))


def line(parameter: str, value: object, price: Price, default: Price) -> str:
    """A line of the table: how much more this value of a parameter takes than the default; all of the default."""
    if parameter:
        numbers = [
            f"{ours - theirs:+,}" if ours != theirs else "0" for ours, theirs in zip(price, default, strict=True)
        ]
        cells = [f"`{parameter}`", str(value), *numbers]
    else:
        cells = ["all defaults", "", *(f"{number:,}" for number in price)]
    return f"| {' | '.join(cells)} |"


def table(prices: Sequence[tuple[str, object, Price]]) -> str:
    """The whole table, of parameters, their values, and what a core with them takes; the first one is the default."""
    default = prices[0][2]
    return _HEADER + "".join(f"{line(*found, default)}\n" for found in prices)
