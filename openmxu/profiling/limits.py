"""What limits a layer, in words."""

from __future__ import annotations

from openmxu.reporting import LayerReport

__all__ = ["limit_in_words"]

_REMEDIES = {
    "array": ("the array", "Only a larger array, or fewer multiply-adds, make it faster."),
    "weights": (
        "the way of the weights into the array",
        "A larger batch uses each tile for more rows; a wider weight bus or faster memory brings tiles sooner.",
    ),
    "host": ("the host port", "A wider host bus or faster memory helps, or more work on what has been read."),
    "activation": ("the activation unit", "More lanes (--lanes) finish more columns in a cycle."),
    "dispatch": ("the dispatcher", "Instructions with more rows help: a larger batch."),
}
"""For each value of ``LayerReport.limit`` that is a part of the core its name, and what helps."""

_WAITS = {
    "raw_stall": "for results of the activation unit",
    "input_stall": "for rows from the host",
    "weight_stall": "for weights",
    "weight_shift": "for weights to be shifted into the array",
}


def limit_in_words(layer: LayerReport) -> str:
    """One or two sentences: what limits a layer, by which numbers, and what would help."""
    if not layer.cycles:
        return "Its work is hidden behind that of other layers."
    if layer.limit in _REMEDIES:
        part, remedy = _REMEDIES[layer.limit]
        share = layer.busy[layer.limit] / layer.cycles
        if share > 1:
            return f"{part.capitalize()} needs more cycles than the layer has, some during other layers. {remedy}"
        return f"{part.capitalize()} is busy for {share:.0%} of the cycles. {remedy}"
    waits = {kind: layer.kinds[kind] for kind in _WAITS if layer.kinds[kind]}
    if not waits:
        return "No part of the core is busy for half of the cycles; instructions wait for each other."
    kind = max(waits, key=waits.__getitem__)
    share = min(1.0, waits[kind] / layer.cycles)
    return (
        f"No part of the core is busy for half of the cycles; the array waits {_WAITS[kind]} for {share:.0%} of them. "
        "A larger batch gives each instruction more rows."
    )
