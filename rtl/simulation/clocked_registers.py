"""Registers whose next value is computed at the clock edge, for simulators that compile a design to a program.

Yosys writes a register as two processes: one computes its next value whenever that may change, the other takes it at
the clock edge. Such a program runs the first one in every cycle, also where the clock stands still, and its result goes
through memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from openmxu.rtl.verilog.modules import with_modules

__all__ = ["with_clocked_registers"]

_NAME = re.compile(r"\\\S+ |[A-Za-z_][\w$]*")
_UPDATE = re.compile(
    r"^  always @\(posedge (?P<clock>\S+)\)\n    (?P<register>\S+) +<= (?P<next>\\\$\d+ );\n", re.MULTILINE
)
_COMPUTATION = re.compile(
    r"^  always @\* begin\n(?:    if \(\\\$auto\$\S+ \) begin end\n)?(?P<statements>.*?)^  end\n",
    re.MULTILINE | re.DOTALL,
)
_TARGET = re.compile(r"^(?P<indent> +)(?P<name>\\\$\d+ )(?P<part> *(?:\[[\d:]+\] )?)= ", re.MULTILINE)


def with_clocked_registers(verilog: str) -> str:
    """The same Verilog, in which a process that computes only the next value of one register is that register's."""
    return with_modules(verilog, _clocked)


def _clocked(module: str) -> str:
    computations = {}
    for computation in _COMPUTATION.finditer(module):
        targets = {target["name"] for target in _TARGET.finditer(computation["statements"])}
        if len(targets) == 1:
            computations[targets.pop()] = computation
    uses = Counter(_NAME.findall(module))
    changes: list[tuple[int, int, str]] = []
    for update in _UPDATE.finditer(module):
        name = update["next"]
        found = computations.get(name)
        # Its declaration and the update use the name once each; who else reads it needs it between clock edges.
        if found is None or uses[name] != 2 + len(_TARGET.findall(found["statements"])):
            continue
        changes.append((*found.span(), ""))
        changes.append((*update.span(), "".join(_process(update, found["statements"]))))
    parts, end = [], 0
    for start, stop, text in sorted(changes):
        parts += [module[end:start], text]
        end = stop
    return "".join([*parts, module[end:]])


def _process(update: re.Match[str], statements: str) -> Iterator[str]:
    register = update["register"]
    yield f"  always @(posedge {update['clock']}) begin\n"
    text = _TARGET.sub(lambda target: f"{target['indent']}{register} {target['part']}<= ", statements)
    # What a register keeps needs no statement.
    yield text.removeprefix(f"    {register}  <= {register}{' ' * register.startswith(chr(92))};\n")
    yield "  end\n"
