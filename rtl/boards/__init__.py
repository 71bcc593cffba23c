"""Bitstreams for boards: the serial shell with what a board has around an FPGA."""

from openmxu.rtl.boards.board import BOARDS, Board
from openmxu.rtl.boards.top import TOP, BoardTop

__all__ = ["BOARDS", "TOP", "Board", "BoardTop"]
