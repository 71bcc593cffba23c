"""The rows of the table: configurations and the parts that they are placed on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from openmxu.arch.config import Config
from openmxu.rtl.boards import BOARDS
from scripts.fpga.boards import on_board
from scripts.fpga.implementation import OUT_OF_CONTEXT_MHZ, Source, out_of_context
from scripts.fpga.parts import find_part

__all__ = ["ROWS", "SEEDS", "Row", "find_rows"]

SEEDS = (1, 2, 3)
"""Seeds of the placements; each figure is their median."""


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes
    ----------
    name
        Short, in lower case.
    config
        Sizes of the core.
    part
        The part that the AXI shell is placed on out of context; empty for a board.
    board
        The board that the serial shell is placed for; empty for a part.
    """

    name: str
    config: Config
    part: str = ""
    board: str = ""

    def source(self) -> tuple[Source, float]:
        """The design and its part, and the target frequency of placements in MHz."""
        if self.board:
            board = BOARDS[self.board]
            return on_board(board, self.config, board.frequency, board.baud)
        return out_of_context(self.config, find_part(self.part)), OUT_OF_CONTEXT_MHZ

    def folder(self, output: Path) -> Path:
        """Folder of its files, the same as that of scripts/synthesize.py."""
        return output / f"{self.board or self.part.replace('/', '_')}-{self.config.fingerprint}"


def _ecp5(name: str, size: int, part: str = "LFE5U-85F", **changes: int | str) -> Row:
    return Row(name, Config.for_size(size, **changes), part=part)


_SHORT = {"weight_fifo_tiles": 4, "weight_queue_depth": 8, "parameter_sets": 64}
"""Of rows that were placed when these were the default sizes."""

_SHORT_16: dict[str, int | str] = {**_SHORT, "activation_lanes": 4, "profile": "standard"}
"""Likewise of an array of 16 × 16."""

ROWS = {
    row.name: row
    for row in (
        _ecp5("s4", 4, **_SHORT),
        _ecp5("s8", 8),
        _ecp5("s8_lanes1", 8, activation_lanes=1, **_SHORT),
        _ecp5("s8_lanes4", 8, activation_lanes=4, **_SHORT),
        _ecp5(
            "s8_small_memories", 8, unified_buffer_rows=2048, accumulator_rows=256, **_SHORT | {"parameter_sets": 16}
        ),
        _ecp5("s8_large_memories", 8, unified_buffer_rows=32768, accumulator_rows=2048, **_SHORT),
        _ecp5("s16", 16, **_SHORT_16),
        _ecp5("s8_25f", 8, part="LFE5U-25F", **_SHORT),
        _ecp5("s8_45f", 8, part="LFE5U-45F", **_SHORT),
        _ecp5("s16_45f", 16, part="LFE5U-45F", **_SHORT_16),
        *(Row(name, board.config, board=name) for name, board in BOARDS.items()),
        Row("icebreaker_full", Config.preset("tiny"), board="icebreaker"),
        Row("tang_nano_9k_full", Config.preset("tiny"), board="tang_nano_9k"),
        # The number of rows leaves block RAM for the rest.
        Row("tang_nano_9k_s8", Config.preset("icebreaker", size=8, unified_buffer_rows=1024), board="tang_nano_9k"),
    )
}
"""Every row, by its name, in the order of the table."""


def find_rows(names: list[str]) -> list[Row]:
    """The rows with these names, or all of them.

    Raises
    ------
    ValueError
        There is no row of that name; the message lists the known ones.
    """
    for name in names:
        if name not in ROWS:
            raise ValueError(f"unknown row {name!r}; known: {', '.join(ROWS)}")
    return [ROWS[name] for name in names or ROWS]
