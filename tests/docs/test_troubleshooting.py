"""The messages in docs/troubleshooting.md are those of the sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MESSAGES = re.findall(r"^\| `(.*?)` \|", (ROOT / "docs" / "troubleshooting.md").read_text(), re.MULTILINE)
SOURCES = "".join(path.read_text() for folder in ("openmxu", "sim") for path in (ROOT / folder).rglob("*.py"))
TEXT = re.sub(r'"\s*\n\s*f?"', "", SOURCES)
"""The sources with literals of several lines joined."""


@pytest.mark.parametrize("message", MESSAGES)
def test_message_is_in_the_sources(message):
    """Each part between two places where something is filled in, as far as it is long enough to mean something."""
    parts = [part.strip() for part in re.split(r"…|\(Det2\): |x\.npy|g\+\+|lz4\.h|damaged: ", message)]
    missing = [part for part in parts if len(part) > 12 and part not in TEXT]
    assert not missing


def test_there_are_messages():
    assert len(MESSAGES) > 10
