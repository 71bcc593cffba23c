"""Write docs/overlap.svg: how the instructions of a small program overlap, by the cycle model.

python -m scripts.docs.overlap
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import openmxu
from openmxu.arch.isa import Unit
from openmxu.compiler import compile_network, gemm_network
from openmxu.profiling import predicted_timeline

PICTURE = Path(__file__).parents[2] / "docs" / "overlap.svg"

SHAPE = (64, 32, 32)
SIZE = 8

_ROWS = {
    Unit.HOST_READ: ("host reads", "#2b6cb0"),
    Unit.WEIGHT: ("weight fetches", "#6b46c1"),
    Unit.MATRIX: ("array", "#b7791f"),
    Unit.ACTIVATION: ("activation", "#2f855a"),
    Unit.HOST_WRITE: ("host writes", "#c53030"),
}
_LEFT, _TOP, _WIDTH, _STEP, _BAR = 110, 56, 730, 42, 24


def picture() -> str:
    """The text of the picture."""
    program = compile_network(gemm_network(*SHAPE), openmxu.Config.for_size(SIZE), effort=0)
    timeline = predicted_timeline(program)
    scale = _WIDTH / timeline.cycles
    height = _TOP + len(_ROWS) * _STEP + 44
    product = " × ".join(map(str, SHAPE))
    title = f"{product} on {SIZE} × {SIZE} elements: what each unit works on"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 {height}" font-family="Helvetica, Arial, sans-serif"'
        ' font-size="13" role="img" aria-labelledby="title">',
        f'  <title id="title">{title}, cycle by cycle</title>',
        f'  <rect width="860" height="{height}" rx="8" fill="#ffffff"/>',
        f'  <text x="20" y="30" font-weight="bold" fill="#1a202c">{title}</text>',
    ]
    for number, (unit, (name, colour)) in enumerate(_ROWS.items()):
        y = _TOP + number * _STEP
        parts.append(f'  <text x="{_LEFT - 10}" y="{y + 17}" text-anchor="end" fill="#1a202c">{name}</text>')
        parts.append(f'  <rect x="{_LEFT}" y="{y}" width="{_WIDTH}" height="{_BAR}" fill="#f4f6f8"/>')
        for index in np.flatnonzero(timeline.unit == unit):
            x, end = timeline.begun[index] * scale, timeline.done[index] * scale
            parts.append(
                f'  <rect x="{_LEFT + x:.1f}" y="{y}" width="{max(end - x, 3):.1f}" height="{_BAR}" fill="{colour}"'
                ' fill-opacity="0.75" stroke="#ffffff" stroke-width="0.7"/>'
            )
    bottom = _TOP + len(_ROWS) * _STEP + 12
    for cycle in range(0, timeline.cycles + 1, 200):
        x = _LEFT + cycle * scale
        parts.append(f'  <text x="{x:.1f}" y="{bottom}" text-anchor="middle" fill="#4a5568">{cycle:,}</text>')
    parts.append(f'  <text x="{_LEFT + _WIDTH / 2}" y="{bottom + 20}" text-anchor="middle" fill="#4a5568">cycle</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> int:
    """Write the picture."""
    PICTURE.write_text(picture(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
