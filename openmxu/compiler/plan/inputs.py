"""When to read a segment's input: early enough to be there, late enough to find room and to block nobody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.compiler.emit.emitter import Read
from openmxu.compiler.plan.sections import Section, startup_rows
from openmxu.compiler.plan.segments import Segment

__all__ = ["input_address", "plan_reads"]

_READ_ROWS = 32
"""Rows that one Read_Host_Memory should have, where planes with fewer rows lie next to each other."""


@dataclass
class _Panel:
    """Rows ``start`` up to ``stop`` of some planes of one block's input, read, used and given up together."""

    block: int
    planes: range
    start: int
    stop: int
    first_use: int
    last_use: int


@dataclass(frozen=True)
class _Piece:
    """What one Read_Host_Memory brings: rows of a panel, and the multiplication that first needs them."""

    panel: int
    start: int
    stop: int
    first_use: int


@dataclass
class _Block:
    """A block's panels, as a range of their numbers, and the multiplications that use them first and last."""

    panels: range
    first_use: int
    last_use: int


def input_address(segment: Segment, panel: int, block: int, plane: int, planes: int) -> int:
    """Unified buffer row where a plane of the segment's input begins; ``panel`` counts planes read into a ring."""
    if segment.ring:
        return segment.inputs[0] + panel % segment.ring * segment.block_rows
    return segment.inputs[0] + (block % segment.slots * planes + plane) * segment.block_rows


def plan_reads(segment: Segment, sections: Sequence[Section], host: int, total_rows: int, config: Config) -> list[Read]:
    """Every read of a segment's input, in order, with its position among the multiplications of the first layer.

    Parameters
    ----------
    sections
        All of the segment.
    host
        Address of the input in host memory.
    total_rows
        M, the distance of its planes there.
    """
    own = [section for section in sections if section.layer == segment.first]
    panels = _panels(segment, own)
    blocks = _blocks(panels)
    pieces = list(_pieces(panels, own))
    lookahead = config.command_queue_depth - 1
    reads: list[Read] = []
    for number, piece in enumerate(pieces):
        panel = panels[piece.panel]
        # Not before an earlier read is about to be used: a full queue of reads would hold back what follows.
        due = pieces[number - lookahead].first_use if number >= lookahead else 0
        if segment.ring:
            free = panels[piece.panel - segment.ring].last_use + 1 if piece.panel >= segment.ring else 0
        else:
            free = blocks[panel.block - segment.slots].last_use + 1 if panel.block >= segment.slots else 0
            if panel.block > 0:
                due = min(due, _spread(panels, blocks, panel.block, piece.panel, free))
        position = max(free, due, reads[-1].position if reads else 0)
        first_row, block_rows = segment.blocks[panel.block]
        first_plane = panel.planes.start
        unified_buffer = input_address(segment, piece.panel, panel.block, first_plane, own[0].shape.planes)
        address = host + (first_plane * total_rows + first_row + piece.start) * config.size
        rows = piece.stop - piece.start + (len(panel.planes) - 1) * block_rows
        reads.append(Read(position, unified_buffer + piece.start, address, rows))
    return reads


def _spread(panels: Sequence[_Panel], blocks: Sequence[_Block], block: int, panel: int, free: int) -> int:
    """A position between ``free`` and the first use of the block, the panels of the block spread evenly."""
    own = blocks[block].panels
    # The first block is read while it is used; there is no time for the second one before that is done.
    begin = panels[own.start - 1].first_use if block == 1 else free
    return begin + (blocks[block].first_use - begin) * (panel - own.start) // len(own)


def _panels(segment: Segment, own: Sequence[Section]) -> list[_Panel]:
    """Panels in the order of use, with the numbers of the multiplications that use them first and last."""
    shape = own[0].shape
    per_panel = 1
    if not segment.ring and len(segment.blocks) == 1:
        per_panel = max(1, _READ_ROWS // segment.block_rows)
    panels: list[_Panel] = []
    number: dict[tuple[int, ...], int] = {}
    use = 0
    for section in own:
        block_rows = segment.blocks[section.block][1]
        start, stop = (section.start, section.stop) if segment.ring else (0, block_rows)
        for item in section.multiplications():
            plane = item.plane // per_panel
            # A ring is read anew for each section, an input that stays only once for each block.
            key = (section.block, section.group, start, plane) if segment.ring else (section.block, plane)
            if key not in number:
                number[key] = len(panels)
                planes = range(plane * per_panel, min((plane + 1) * per_panel, shape.planes))
                panels.append(_Panel(section.block, planes, start, stop, use, use))
            panels[number[key]].last_use = use
            use += 1
    return panels


def _blocks(panels: Sequence[_Panel]) -> list[_Block]:
    blocks: list[_Block] = []
    for index, panel in enumerate(panels):
        if panel.block == len(blocks):
            blocks.append(_Block(range(index, index), panel.first_use, panel.last_use))
        block = blocks[panel.block]
        block.panels = range(block.panels.start, index + 1)
        block.last_use = max(block.last_use, panel.last_use)
    return blocks


def _pieces(panels: Sequence[_Panel], own: Sequence[Section]) -> Iterator[_Piece]:
    """Panels as single reads; the very first plane in parts, each with the multiplication that needs it."""
    for index, panel in enumerate(panels):
        part, last = panel.stop - panel.start, 0
        if index == 0 and len(panel.planes) == 1:
            part = startup_rows(own[0].stop)
            # Rows that a later section needs come with the last part: the next plane is needed before them.
            last = -(-own[0].stop // part) - 1
        for number, start in enumerate(range(panel.start, panel.stop, part)):
            yield _Piece(index, start, min(start + part, panel.stop), panel.first_use + min(number, last))
