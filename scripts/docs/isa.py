"""Write docs/isa.md from the tables of openmxu.arch; with --check only say whether it is up to date."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from openmxu.arch.events import (
    COMMANDS,
    CORE_STATUS,
    COUNTERS,
    IDENTIFICATION,
    STATUS_UNITS_OFFSET,
    EventKind,
    Management,
)
from openmxu.arch.faults import FAULT_DESCRIPTIONS
from openmxu.arch.isa import FORMATS, REGISTERS, UNITS, WORD_BITS, WORD_BYTES, Field, Format, RegisterFormat
from openmxu.arch.profile import PROFILES, Profile, profile_named
from openmxu.assembler import assemble
from openmxu.disassembler import disassemble

DEFAULT_OUTPUT = Path(__file__).resolve().parents[2] / "docs" / "isa.md"

EXAMPLE = """\
# Multiply 8 rows of host memory by one 8 x 8 tile of weights.
set_configuration register=INPUT_FORMAT, zero_point=128     ; uint8 inputs
set_configuration register=WEIGHT_FORMAT, signed            ; int8 weights, zero point 0
set_configuration register=OUTPUT_FORMAT, zero_point=-3, minimum=-128, maximum=127
read_weights tiles=1, weights=0x0
read_host_memory unified_buffer=0, rows=8, host=0x0         ; 8 rows of one parameter set
set_configuration register=LOAD_PARAMETERS, unified_buffer=0, first=0, count=1
read_host_memory unified_buffer=64, rows=8, host=0x40       ; 8 rows of inputs
matrixmultiply next_tile, unified_buffer=64, accumulator=0, rows=8
activate unified_buffer=128, source=0, rows=8, parameters=0, output=BYTE
write_host_memory unified_buffer=128, rows=8, host=0x80
halt
"""

EVENT_DESCRIPTIONS = {
    EventKind.HALT: "A Halt has finished: the program is over and all its bytes are in host memory.",
    EventKind.FAULT: "The instruction raised the fault whose code the event carries; the program is over.",
    EventKind.HOST_SYNCHRONIZE: "A Host_Synchronize waits for the host's acknowledgement; carries its tag.",
    EventKind.INTERRUPT: "An Interrupt_Host was executed; carries its tag.",
    EventKind.DEBUG_TAG: "A Debug_Tag was dispatched; carries its tag.",
}
MANAGEMENT_DESCRIPTIONS = {
    Management.IDENTIFICATION: (
        "read",
        f"`{IDENTIFICATION:#018x}`: `OPNMXU` in ASCII, lowest byte first, and above it the interface version",
    ),
    Management.STATUS: (
        "read",
        f"flags, see below; from bit {STATUS_UNITS_OFFSET} on one busy bit for each unit",
    ),
    Management.COMMAND: ("write", "writing 1 to a bit acts once, see below"),
    Management.HOST_BASE: ("read, write", "first byte address of the host memory window"),
    Management.HOST_LIMIT: ("read, write", "first byte address behind the host memory window"),
    Management.WEIGHT_BASE: ("read, write", "first byte address of the weight memory window"),
    Management.WEIGHT_LIMIT: ("read, write", "first byte address behind the weight memory window"),
    Management.COUNTERS: ("read", "the first counter; the others follow"),
}

INTRODUCTION = f"""\
# The instruction set

<!-- Written by scripts/docs/isa.py from openmxu/arch; edit those and run it again. -->

A program is a stream of {WORD_BYTES}-byte words without branches. A word is a little-endian {WORD_BITS}-bit number:
bit 0 is the lowest bit of byte 0. Byte 0 is the opcode; bits that belong to no field are reserved
and must be 0. S is the size of the array (S × S processing elements); a row is S bytes in the
unified buffer and S int32 sums in the accumulators.

**Order.** A program means what it would mean executed one instruction after the other. The hardware
overlaps whatever it can and interlocks by itself: no program needs a Nop or a Synchronize to be
right. Memories and configuration registers keep their contents from one program to the next; all
configuration registers are 0 after reset.

A mode of Activate whose number has no name faults as `UNIMPLEMENTED`."""

ARITHMETIC = """\
## Arithmetic

All sums are int32 and wrap.

**Elements.** An element row is S elements in as many unified buffer rows as an element has bytes, lowest bytes first:
16-bit element row e lies in rows 2e (low bytes) and 2e + 1 (high bytes) behind the first one, int32 results in rows 4r
to 4r + 3. Bytes and 16-bit elements are unsigned or signed, minus a zero point, as INPUT_FORMAT, WEIGHT_FORMAT,
SOURCE_FORMAT and OPERAND_FORMAT say.

**MatrixMultiply, Convolve.** Output r of column n is the sum over k of input[r, k] × weight[k, n], added to the
accumulators or put in their place. With `wide_input` the inputs are int16, low bytes unsigned and high bytes signed,
without zero point; the array goes over all rows once with the low bytes and once more with the high ones, shifted by 8.
With `wide_weights` it does so for each of two tiles, low bytes and high bytes of int16 weights, which Read_Weights
fetches in turn while WEIGHT_FORMAT is `wide`. The tile of the high bytes is the one that stays in the array.

**Load_Weights.** weight[k, n] is byte n of row k of the S rows, or byte k of row n if `transposed`, minus the zero
point. So with the rows of Q as inputs and those of K loaded transposed, the sums are Q · Kᵀ; with rows of V loaded as
they are, sums of P · V.

Convolve numbers its outputs row by row. Output (y, x) reads position (y · stride_y + dy, x · stride_x + dx) of the
plane; position (p, q) is element row p · width + q. One outside gives zeros: padding is zero after the zero point is
subtracted.

**Activate.** For each result r and column n:

1. The source is accumulator row or element row r. With pooling it is the maximum or the sum over the positions
   (oy · stride_y − pad_top + i, ox · stride_x − pad_left + j) that lie inside the plane, for i below the window's
   height and j below its width, where oy = r div output_width and ox = r mod output_width.
2. sum = source + bias[n]
3. `MULTIPLY`: sum = sum × second operand
4. `INT32` output: the sum is the result. Otherwise the sum becomes float32, is multiplied by scale[n] (a float32
   product) and rounded half to even. `ADD`: the scaled sum and operand × OPERAND_SCALE become fixed-point numbers with
   24 bits behind the point, and what is rounded is their sum.
5. result = min(max(rounded + zero_point, minimum), maximum). Its low byte or low 16 bits are written, or what the table
   has for the low byte.

`openmxu.arch.numerics` is the same in numpy, bit for bit, special values of the scales included."""

SYNTAX = """\
## Assembly

One instruction per line; `#` or `;` begins a comment. A mnemonic is followed by the instruction's fields, separated by
commas, in any order:

- `name=value` sets a field. A value is an integer, decimal (`12`), hexadecimal (`0x1f`), octal (`0o17`) or binary
  (`0b101`), with a sign if need be, and with underscores between digits (`0x8000_0000`), or the name of a choice
  (`output=INT32`).
- A field of one bit is a flag: its bare name sets it to 1. `name=0` and `name=1` are possible too.
- Fields that are left out are 0; each can be given once.
- Mnemonics, fields and choices may be written in upper or lower case.

`set_configuration` takes the register's value as a number, `register=HOST_STRIDE, value=0x40`, or as the register's own
fields, `register=HOST_STRIDE, stride=64`. `.word` and an integer from 0 to 2¹²⁸ − 1 is a raw word, legal or not.

Errors are one line, `file:line:column: found …, expected …`. With the configuration of the machine (`openmxu assemble
--size`) the assembler also reports the first instruction that would fault there, except for the memory windows, which
the driver sets.

An example for S = 8:

```text
{example}```

The same program as the disassembler writes it. Flags that are 0, choices `NONE` and the number of table 0 are left
out; a word that no instruction encodes becomes `.word`.

```text
{canonical}```"""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def bits(field: Field) -> str:
    """The place of a field, highest bit first."""
    return f"{field.offset}" if field.is_flag else f"{field.offset + field.width - 1}:{field.offset}"


def field_kind(field: Field) -> str:
    """How a field's bits are read."""
    if field.is_flag:
        return "flag"
    return f"{'signed' if field.signed else 'unsigned'} {field.width}"


def choice_values(field: Field) -> str:
    """The named values of a field."""
    if field.name == "register":
        return "see [Configuration registers](#configuration-registers)"
    return ", ".join(f"{int(choice)} `{choice.name}`" for choice in field.choices or ())


def fields_table(item: Format | RegisterFormat, opcode: int | None = None) -> str:
    """The layout of a word or of a register value."""
    rows = [] if opcode is None else [["7:0", "opcode", "unsigned 8", f"`{opcode:#04x}`", ""]]
    rows += [
        [bits(field), f"`{field.name}`", field_kind(field), field.description, choice_values(field)]
        for field in item.fields
    ]
    return table(["bits", "field", "type", "meaning", "values"], rows)


def instructions() -> str:
    """Every instruction: an overview, then one section each."""
    overview = table(
        ["opcode", "instruction", "mnemonic"],
        [[f"`{int(f.opcode):#04x}`", f"[{f.name}](#{f.mnemonic})", f"`{f.mnemonic}`"] for f in FORMATS],
    )
    sections = ["\n\n".join([f"### {f.name}", f.description, fields_table(f, int(f.opcode))]) for f in FORMATS]
    return "\n\n".join(["## Instructions", overview, *sections])


def registers() -> str:
    """Every configuration register."""
    introduction = (
        "[Set_Configuration](#set_configuration) writes one register. Bits of the value that belong to no field must "
        "be 0. Writing a register that is an action starts work: it reads unified buffer rows at that place of the "
        "program."
    )
    sections = []
    for register in REGISTERS:
        text = f"{'Action. ' if register.is_action else ''}{register.description}"
        sections += [f"### {int(register.number)}: {register.name}", text, fields_table(register)]
    return "\n\n".join(["## Configuration registers", introduction, *sections])


def profiles() -> str:
    """The features of the smaller profiles."""
    standard = profile_named("standard")
    assert standard.registers == REGISTERS
    texts = [
        "## Profiles",
        "A configuration's `profile` says which part of the instruction set its cores execute: `full` is all of it, "
        f"`standard` all but {_listed(standard)}, which products of two activations need, and which brings weights "
        "through the host port. "
        "What a profile lacks is illegal to its cores as if nobody had it: the opcode is unknown, the field's bits are "
        "reserved, the register does not exist. A program that is legal in a smaller profile means the same in the "
        "full one.",
    ]
    for profile in PROFILES:
        if profile.registers == REGISTERS:
            continue
        formats = [
            [f"[{f.name}](#{f.mnemonic})", ", ".join(f"`{field.name}`" for field in f.fields)] for f in profile.formats
        ]
        names = [
            [f"`{register.name}`", ", ".join(f"`{field.name}`" for field in register.fields)]
            for register in profile.registers
        ]
        counters = ", ".join(f"`{counter.name}`" for counter in profile.counters)
        texts += [
            f"### The profile `{profile.name}`",
            table(["instruction", "fields"], formats),
            table(["register", "fields"], names),
            f"Counters: {counters}, of {profile.counter_width} bits, behind which they begin again with 0; the others "
            "read as 0.",
        ]
        if profile.is_sequential:
            texts.append(
                "An instruction begins when the one before it has finished; only tiles of weights come ahead of their "
                "use."
            )
        if not profile.has_scrubber:
            texts.append("The command `SCRUB` does nothing: the driver runs a program that clears the memories.")
    return "\n\n".join(texts)


def _listed(profile: Profile) -> str:
    """The instructions that a profile lacks."""
    return ", ".join(f"[{f.name}](#{f.mnemonic})" for f in FORMATS if f not in profile.formats)


def units() -> str:
    """The units by number."""
    rows = [[int(unit), f"`{unit.name}`"] for unit in UNITS]
    text = "Bit numbers in [Synchronize](#synchronize) and, counted from the first busy bit, in the status register."
    return "\n\n".join(["## Units", text, table(["bit", "unit"], rows)])


def faults() -> str:
    """Every fault code."""
    text = (
        "An instruction that breaks a rule is not executed: everything before it is finished, the rest of the program "
        "is dropped, and an event carries the code and the index of the instruction. An instruction with several "
        "defects reports the lowest code."
    )
    rows = [[int(code), f"`{code.name}`", description] for code, description in FAULT_DESCRIPTIONS.items()]
    return "\n\n".join(["## Faults", text, table(["code", "fault", "meaning"], rows)])


def events() -> str:
    """Every kind of event."""
    text = "Each event carries the index of its instruction within the program."
    rows = [[int(kind), f"`{kind.name}`", EVENT_DESCRIPTIONS[kind]] for kind in EventKind]
    return "\n\n".join(["## Events", text, table(["kind", "event", "meaning"], rows)])


def management() -> str:
    """The management registers, the command bits and the counters."""
    rows = [[f"`{int(m):#04x}`", f"`{m.name}`", *MANAGEMENT_DESCRIPTIONS[m]] for m in Management]
    flags = [[int(flag), f"`{flag.name}`", text] for flag, text in CORE_STATUS.items()]
    commands = [[int(command), f"`{command.name}`", text] for command, text in COMMANDS.items()]
    counters = [
        [f"`{Management.COUNTERS + counter:#04x}`", f"`{counter.name}`", text] for counter, text in COUNTERS.items()
    ]
    return "\n\n".join(
        [
            "## Management registers",
            "64-bit registers that the host reads and writes while programs run.",
            table(["address", "register", "access", "meaning"], rows),
            "### Status flags",
            table(["bit", "flag", "meaning"], flags),
            "### Commands",
            table(["bit", "command", "effect"], commands),
            "### Counters",
            table(["address", "counter", "meaning"], counters),
        ]
    )


def document() -> str:
    """All of docs/isa.md."""
    syntax = SYNTAX.format(example=EXAMPLE, canonical=disassemble(assemble(EXAMPLE, name="example")))
    parts = [
        INTRODUCTION,
        instructions(),
        registers(),
        profiles(),
        ARITHMETIC,
        units(),
        faults(),
        events(),
        management(),
        syntax,
    ]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Write or check the document; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the document is stale")
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="the document (default: docs/isa.md)")
    arguments = parser.parse_args()
    text = document()
    if arguments.check:
        if arguments.output.exists() and arguments.output.read_text(encoding="utf-8") == text:
            return 0
        print(f"{arguments.output} is stale; run: python scripts/docs/isa.py", file=sys.stderr)
        return 1
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
