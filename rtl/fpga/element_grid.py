"""A grid of equal elements as loops over arrays, for simulators that compile a design to a program.

As instances, 256 × 256 elements are some million statements, which compile slowly, and a processor waits for
its own instructions. As loops they are as many statements as one element has, over arrays that the compiler vectorizes.
The element's netlist is the source; the loops compute the same registers in the same cycles.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amaranth._toolchain.yosys import find_yosys
from amaranth.lib import wiring

from openmxu.rtl.fpga.rtlil_text import ports_of, to_rtlil

__all__ = ["Link", "Source", "grid_of_loops"]

_OPERATORS = {"$add": "+", "$sub": "-", "$mul": "*", "$and": "&", "$or": "|", "$xor": "^"}

_SCRIPT = """\
read_rtlil <<rtlil
{rtlil}
rtlil
hierarchy -top element
proc
flatten
opt_expr
opt_merge
opt_clean
write_json
"""


class Source(enum.Enum):
    """The neighbour that drives an element's input; inputs of the grid drive those at its edge."""

    LEFT = "left"
    ABOVE = "above"
    LEFT_OR_ABOVE = "left or above"
    """The left one, and in the first column the one above: only the first element has an input of the grid."""


@dataclass(frozen=True)
class Link:
    """An input of each element, and the output of its neighbour that drives it."""

    input: str
    output: str
    source: Source


def grid_of_loops(
    element: wiring.Component, name: str, size: int, links: Sequence[Link], result: str, platform: object
) -> str:
    """The Verilog of a module with ``size`` × ``size`` elements, ``size`` a power of two.

    Its inputs are ``clk`` and, packed, those of the elements at the edge, with the names that they have there. Its
    output is the elements' output ``result`` in the last row.

    Raises
    ------
    ValueError
        The element has logic that cannot be written as a loop: a cell of an unknown kind, an output that is no
        register, or a reset.
    """
    netlist = _Netlist(element, platform)
    count = size * size
    steps = {Source.LEFT: 1, Source.ABOVE: size, Source.LEFT_OR_ABOVE: 1}
    edges = {Source.LEFT: size, Source.ABOVE: size, Source.LEFT_OR_ABOVE: 1}
    width_of = {link.input: netlist.width(link.input) for link in links}
    outer = [f"  input [{edges[link.source] * width_of[link.input] - 1}:0] {link.input};" for link in links]
    result_width = netlist.width(result)
    last_row = range(count - 1, count - size - 1, -1)
    lines = [
        f"module {name} (clk, {', '.join(link.input for link in links)}, {result});",
        "  input clk;",
        *outer,
        f"  output reg [{size * result_width - 1}:0] {result};",
        *(f"  reg [{width_of[link.input] - 1}:0] from_{link.input} [0:{count - 1}];" for link in links),
        *(f"  reg [{width - 1}:0] {register} [0:{count - 1}];" for register, width in netlist.registers.items()),
        *(f"  reg [{width - 1}:0] {variable};" for variable, width in netlist.variables.items()),
        "  int unsigned i;",
        f"  initial for (int unsigned first = 0; first < {count}; first = first + 1) begin",
        *(f"    {register}[first] = 0;" for register in netlist.registers),
        "  end",
        "  always @(posedge clk) begin",
        # Verilator keeps a variable local to a function that begins with an assignment to it.
        "    i = 0;",
        *(f"    {variable} = 0;" for variable in netlist.variables),
    ]
    for link in links:
        step, width, target = steps[link.source], width_of[link.input], f"from_{link.input}"
        neighbour = netlist.output(link.output, f"i - {step}")
        lines.append(f"    for (i = {step}; i < {count}; i = i + 1) {target}[i] = {neighbour};")
        edge = [f"{link.input}[{number * width} +: {width}]" for number in range(edges[link.source])]
        # No loops: a place in a wide word that is known when it is compiled takes a tenth of the time.
        if link.source is Source.ABOVE:
            lines += [f"    {target}[{number}] = {place};" for number, place in enumerate(edge)]
        elif link.source is Source.LEFT:
            lines += [f"    {target}[{number * size}] = {place};" for number, place in enumerate(edge)]
        else:
            above = netlist.output(link.output, f"i*{size} - {size}")
            lines.append(f"    for (i = 1; i < {size}; i = i + 1) {target}[i*{size}] = {above};")
            lines.append(f"    {target}[0] = {link.input};")
    lines += [
        f"    for (i = 0; i < {count}; i = i + 1) begin",
        *(f"      {statement}" for statement in netlist.statements),
        "    end",
        f"    {result} <= {{{', '.join(netlist.output(result, str(number)) for number in last_row)}}};",
        "  end",
        "endmodule",
    ]
    return "\n".join(lines) + "\n"


class _Netlist:
    """One element: its registers, and the statements that compute them."""

    def __init__(self, element: wiring.Component, platform: object) -> None:
        rtlil = to_rtlil(element, "element", platform, ports_of(element))
        yosys = find_yosys(lambda version: version >= (0, 40))
        text = yosys.run(["-q", "-"], _SCRIPT.format(rtlil=rtlil), ignore_warnings=True)
        self._module: dict[str, Any] = json.loads(text[text.index("{") :])["modules"]["element"]
        self.registers: dict[str, int] = {}
        self.variables: dict[str, int] = {}
        self._bits: dict[int, tuple[str, int, int]] = {}
        """For each bit of the netlist the value that holds it, its place there, and the value's width."""
        for port, description in self._module["ports"].items():
            if description["direction"] == "input" and port not in ("clk", "rst"):
                self._hold(f"from_{port}[i]", description["bits"])
        cells = list(self._module["cells"].values())
        for number, cell in enumerate(cell for cell in cells if cell["type"] == "$dff"):
            name = self._name_of(cell["connections"]["Q"], number)
            self.registers[name] = len(cell["connections"]["Q"])
            self._hold(f"{name}[i]", cell["connections"]["Q"])
        self.statements = list(self._statements(cells))
        """What the registers of element ``i`` hold a cycle later."""

    def _hold(self, value: str, bits: Sequence[int]) -> None:
        for place, bit in enumerate(bits):
            self._bits[bit] = value, place, len(bits)

    def _name_of(self, bits: Sequence[int], number: int) -> str:
        names = (name for name, net in self._module["netnames"].items() if net["bits"] == list(bits))
        plain = [re.sub(r"\W", "_", name) for name in names if not name.startswith("$")]
        return f"{min(plain, key=len, default='register')}_{number}"

    def width(self, port: str) -> int:
        """Bits of a port."""
        return len(self._module["ports"][port]["bits"])

    def output(self, port: str, index: str) -> str:
        """An output of the element with an index, which is one of its registers."""
        value = self._value(self._module["ports"][port]["bits"])
        register = value.removesuffix("[i]")
        if register not in self.registers:
            raise ValueError(f"output {port} of the element must be a register, not {value}")
        return f"{register}[{index}]"

    def _statements(self, cells: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        waiting = [cell for cell in cells if cell["type"] not in ("$dff", "$scopeinfo")]
        while waiting:
            ready = [cell for cell in waiting if all(map(self._is_known, _operands(cell).values()))]
            if not ready:
                raise ValueError("the element has a loop of logic, or uses its reset")
            for cell in ready:
                waiting.remove(cell)
                variable, bits = f"value_{len(self.variables)}", cell["connections"]["Y"]
                self.variables[variable] = len(bits)
                yield f"{variable} = {self._expression(cell)};"
                self._hold(variable, bits)
        flip_flops = [cell for cell in cells if cell["type"] == "$dff"]
        for register, cell in zip(self.registers, flip_flops, strict=True):
            self.variables[f"next_{register}"] = self.registers[register]
            yield f"next_{register} = {self._value(cell['connections']['D'])};"
        for register in self.registers:
            yield f"{register}[i] = next_{register};"

    def _expression(self, cell: Mapping[str, Any]) -> str:
        values = {operand: self._value(bits) for operand, bits in _operands(cell).items()}
        if cell["type"] == "$mux":
            return f"{values['S']} ? {values['B']} : {values['A']}"
        if cell["type"] not in _OPERATORS:
            raise ValueError(f"the element has a cell {cell['type']}, of which no statement is known")
        if int(cell["parameters"]["A_SIGNED"], 2) and int(cell["parameters"]["B_SIGNED"], 2):
            values = {operand: f"$signed({value})" for operand, value in values.items()}
        return f"{values['A']} {_OPERATORS[cell['type']]} {values['B']}"

    def _is_known(self, bits: Sequence[int | str]) -> bool:
        return all(isinstance(bit, str) or bit in self._bits for bit in bits)

    def _value(self, bits: Sequence[int | str]) -> str:
        """The lower bits of a register, an input or a variable, or a constant."""
        if all(isinstance(bit, str) for bit in bits):
            return f"{len(bits)}'b{''.join(str(bit) for bit in reversed(bits))}"
        holders = [self._bits.get(bit) for bit in bits if isinstance(bit, int)]
        first = holders[0]
        if first is None or holders != [(first[0], place, first[2]) for place in range(len(bits))]:
            raise ValueError("the element has an operand that is no register, input or result from its lowest bit on")
        return first[0] if len(bits) == first[2] else f"{first[0]}[{len(bits) - 1}:0]"


def _operands(cell: Mapping[str, Any]) -> dict[str, list[int | str]]:
    return {name: bits for name, bits in cell["connections"].items() if name not in ("Y", "Q", "CLK")}
