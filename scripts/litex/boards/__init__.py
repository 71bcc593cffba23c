"""The LiteX system for boards: a file for each board with its pins, clocks and memory, and the flow to a bitstream."""

from scripts.litex.boards.board import Board
from scripts.litex.boards.ecpix5 import ECPIX5
from scripts.litex.boards.ulx3s import ULX3S

__all__ = ["BOARDS", "Board"]

BOARDS = {board.name: board for board in (ULX3S, ECPIX5)}
"""Every board, by its name."""
