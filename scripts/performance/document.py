"""The document that measurements are written to."""

from pathlib import Path

__all__ = ["DOCUMENT"]

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
