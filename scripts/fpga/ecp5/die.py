"""Places of the blocks on ECP5's three dies."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DIE_25F", "DIE_45F", "DIE_85F", "Ecp5Die"]


@dataclass(frozen=True)
class Ecp5Die:
    """Coordinates of blocks, found by filling a die of each size with them.

    Attributes
    ----------
    option
        nextpnr's option for the die.
    flip_flops
        Flip-flops in slices.
    columns
        Columns at which groups of four blocks begin.
    multiplier_rows, block_ram_rows
        Rows of such groups.
    """

    option: str
    flip_flops: int
    columns: tuple[int, ...]
    multiplier_rows: tuple[int, ...]
    block_ram_rows: tuple[int, ...]

    @property
    def multipliers(self) -> int:
        """The number of MULT18X18D."""
        return 4 * len(self.multiplier_rows) * len(self.columns)

    @property
    def array_sites(self) -> tuple[tuple[str, ...], ...]:
        """Multipliers for an array, from left to right, for each row of them.

        A group has four clock enables for all of its blocks: one is constant, and each block of the array needs a
        separate one, so a group holds three of them.
        """
        return tuple(
            tuple(f"X{column + offset}/Y{row}/MULT18_{offset}" for column in self.columns for offset in (0, 1, 4))
            for row in self.multiplier_rows
        )

    @property
    def block_sites(self) -> dict[str, tuple[str, ...]]:
        """Every place of multipliers and of block RAM."""
        return {
            "MULT18X18D": tuple(
                f"X{column + offset}/Y{row}/MULT18_{offset}"
                for row in self.multiplier_rows
                for column in self.columns
                for offset in (0, 1, 4, 5)
            ),
            "DP16KD": tuple(
                f"X{column + 2 * index}/Y{row}/EBR{index}"
                for row in self.block_ram_rows
                for column in self.columns
                for index in range(4)
            ),
        }


DIE_25F = Ecp5Die("--25k", 24288, (4, 13, 22, 33, 42, 51, 60), (13,), (25, 37))
DIE_45F = Ecp5Die("--45k", 43848, (4, 13, 22, 31, 42, 51, 60, 69, 78), (22, 46), (10, 34, 58))
DIE_85F = Ecp5Die("--85k", 83640, (4, 13, 22, 31, 40, 49, 58, 69, 78, 87, 96, 105, 114), (10, 34, 58), (22, 46, 70, 82))
