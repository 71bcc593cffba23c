"""docs/serial.md lists every frame and message as defined in the tables."""

from __future__ import annotations

import re
from pathlib import Path

from openmxu.arch.serial import CRC_BYTES, ESCAPE, ESCAPE_MASK, FLAG, MESSAGE_BYTES, MESSAGES, FrameKind

TEXT = (Path(__file__).parents[2] / "docs" / "serial.md").read_text()


def test_messages() -> None:
    rows = re.findall(r"^\| `(0x\w+)` \| (\w+) \| (\w+) \| (.*?) \| (.*?) \|$", TEXT, re.MULTILINE)
    expected = []
    for kind, form in MESSAGES.items():
        fields = [f"{field.name} ({field.size})" for field in form.fields] + ["data"] * form.has_data
        sender = "device" if kind.is_from_device else "computer"
        expected.append((f"{kind:#04x}", kind.name, sender, ", ".join(fields) or "none", form.description))
    assert rows == expected


def test_frames() -> None:
    rows = re.findall(r"^\| (\d) \| ([A-Z]+) \|", TEXT, re.MULTILINE)
    assert rows == [(str(kind.value), kind.name) for kind in FrameKind]
    for text in (
        f"`{FLAG:#x}`",
        f"`{ESCAPE:#x}`",
        f"`{ESCAPE_MASK:#x}`",
        f"| 0 … {MESSAGE_BYTES} |",
        f"| {CRC_BYTES} |",
    ):
        assert text in TEXT
