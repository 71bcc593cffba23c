"""A report as a table: a row for each node that the host computes and each layer, and one for all layers together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openmxu.reporting import LayerReport, Report

__all__ = ["REPORT_HEADINGS", "TEXT_HEADINGS", "report_rows", "report_title"]

REPORT_HEADINGS = (
    *("layer", "kind", "instructions", "cycles", "bound", "bound by", "÷ cycles", "multiply-adds", "utilization"),
    *("host read bytes", "host write bytes", "weight bytes", "buffer rows", "limited by"),
)
"""The columns."""

TEXT_HEADINGS = ("layer", "kind", "bound by", "limited by")
"""Those that do not hold numbers."""


def report_title(report: Report) -> str:
    """The assumptions that the numbers are for."""
    rates = (("host", report.host_rate), ("weights", report.weight_rate))
    limits = "".join(f", {name} at {float(rate):g} bytes/cycle" for name, rate in rates if rate is not None)
    source = "Predicted" if report.source == "model" else f"Recorded on the device {report.source}"
    return (
        f"{source}: array of {report.size} × {report.size}, batch of {report.batch}, memory latency of "
        f"{report.memory_latency} cycles{limits}"
    )


def report_rows(report: Report) -> list[tuple[str | int | float, ...]]:
    """The rows in the order of the network, the total last; nodes of the host only have the first two columns."""
    unknown = ("",) * (len(REPORT_HEADINGS) - 2)
    layers = iter(report.layers)
    rows: list[tuple[str | int | float, ...]] = []
    for segment in report.segments:
        for node in segment.nodes:
            rows.append((node, "host", *unknown) if segment.where == "host" else _row(next(layers)))
    return [*rows, _row(report.total)]


def _row(layer: LayerReport) -> tuple[str | int | float, ...]:
    return (
        *(layer.name, layer.kind, layer.instructions, layer.cycles, layer.bound, layer.bound_by, layer.bound_ratio),
        *(layer.multiply_adds, layer.utilization, layer.host_read_bytes, layer.host_write_bytes),
        *(layer.weight_bytes, layer.unified_buffer_rows, layer.limit),
    )
