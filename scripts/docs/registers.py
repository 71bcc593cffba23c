"""Write docs/registers.md and docs/openmxu_registers.h from the register map; with --check only say whether they are
up to date."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from openmxu.arch.registers import DEVICE_REGISTERS, MAP_VERSION, DeviceRegister, RegisterField
from openmxu.driver.c_header import HEADER_NAME, c_header

FOLDER = Path(__file__).resolve().parents[2] / "docs"
DOCUMENT = "registers.md"

SOURCE = "Written by scripts/docs/registers.py from openmxu/arch/registers.py; edit that and run it again."

INTRODUCTION = f"""\
# Registers

<!-- {SOURCE} -->

A host drives the AXI shell through these registers, 4 KiB of them behind AXI4-Lite with 32 data bits
([{HEADER_NAME}]({HEADER_NAME}) has the same for C). Version {MAP_VERSION} of the map.

- Accesses are words of 32 bits. A write of a part of a word is answered with SLVERR and does nothing.
- A 64-bit register is two words, the low one first. Read the low word, then the high one: they belong together. Write
  the low word, then the high one: that writes both. Processors that share the device need a lock around such pairs.
- Offsets without a register read as 0 and ignore writes, and so do registers that are only read.
- Registers that can be written are 0 after reset, unless another value is told.

## How a driver uses them

**Programs.** The ring is a piece of host memory for instructions, 16 bytes each. Write RING_BASE and RING_SIZE, set
ENABLE, put instructions into the ring from offset 0 on and then write the offset behind the last one to RING_HEAD. The
device fetches instructions from RING_TAIL up to RING_HEAD and goes on at offset 0 when it reaches RING_SIZE. Go on
putting instructions behind RING_HEAD, as long as there is room before RING_TAIL: a program may be longer than the ring.
A program that shall run again may stay in a ring with one place more than it has instructions: clear ENABLE, set it
again, and write the same RING_HEAD.

**Memory.** A program's host address a is bus address HOST_OFFSET + a, and must lie in HOST_BASE ≤ a < HOST_LIMIT; the
same for weights. Memory is accessed in whole beats: the device may read, and drop, other bytes of the first and the
last beat; it never writes them. The ring lies where RING_BASE says, outside of the programs' reach unless the driver
puts it there.

**Events.** Each event goes into a queue and sets its bit in INTERRUPT_STATUS. Read EVENT, EVENT_TAG and EVENT_INDEX
while VALID is set, and take each event away with POP_EVENT. After HOST_SYNCHRONIZE the program waits for ACKNOWLEDGE.

**After a fault** the device drops instructions. Clear ENABLE, wait until FETCHING is 0, and write CLEAR_FAULT: it is
ready for the next program.

**After a bus error or a time-out** no further instruction starts; FAULT, BUS_ERROR and BUS_ERROR_ADDRESS say what
happened. Write RESET and wait until RESETTING is 0; that is when memories have answered all that they were asked. The
same ends a program at any time. Windows and counters are 0 after that, and ENABLE too.
"""


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    lines = [list(head)]
    lines += [["---"] * len(lines[0]), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def bits(field: RegisterField) -> str:
    """The place of a field, highest bit first."""
    return f"{field.offset}" if field.width == 1 else f"{field.offset + field.width - 1}:{field.offset}"


def description(register: DeviceRegister) -> str:
    """The description of a register, with its special properties."""
    text = register.description
    if register.address_parameter is not None:
        text += f"; has the bits of `{register.address_parameter}`"
    if register.initial:
        text += f"; `{register.initial:#x}` after reset"
    return text


def document() -> str:
    """All of docs/registers.md."""
    rows = [
        [
            f"`{register.offset:#05x}`",
            f"`{register.name}`",
            register.width,
            register.access.value,
            description(register),
        ]
        for register in DEVICE_REGISTERS
    ]
    parts = [INTRODUCTION, "## All registers\n", table(["offset", "register", "bits", "access", "meaning"], rows), ""]
    parts.append("## Fields\n")
    for register in DEVICE_REGISTERS:
        if register.fields:
            fields = [[bits(field), f"`{field.name}`", field.description] for field in register.fields]
            parts += [f"### {register.name}\n", table(["bits", "field", "meaning"], fields), ""]
    return "\n".join(parts).rstrip("\n") + "\n"


def main() -> int:
    """Write or check the files; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is stale")
    parser.add_argument("--output", type=Path, default=FOLDER, help="their folder (default: docs)")
    arguments = parser.parse_args()
    status = 0
    for name, text in ((DOCUMENT, document()), (HEADER_NAME, c_header())):
        path = arguments.output / name
        if arguments.check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                print(f"{path} is stale; run: python scripts/docs/registers.py", file=sys.stderr)
                status = 1
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
