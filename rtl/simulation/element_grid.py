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

from openmxu.rtl.verilog.rtlil_text import ports_of, to_rtlil

__all__ = ["Link", "Source", "grid_of_loops"]

_OPERATORS = {"$add": "+", "$sub": "-", "$mul": "*", "$and": "&", "$or": "|", "$xor": "^"}

_VECTOR = 64
"""Elements that a processor may compute at once: for those that remain it would take one after the other."""

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
    layout = _Layout(size)
    netlist = _Netlist(element, platform, {link.input: layout.neighbour(link) for link in links})
    edges = {Source.LEFT: size, Source.ABOVE: size, Source.LEFT_OR_ABOVE: 1}
    width_of = {link.input: netlist.width(link.input) for link in links}
    outer = [f"  input [{edges[link.source] * width_of[link.input] - 1}:0] {link.input};" for link in links]
    lines = [
        f"module {name} (clk, {', '.join(link.input for link in links)}, {result});",
        "  input clk;",
        *outer,
        f"  output reg [{size * netlist.width(result) - 1}:0] {result};",
        *(f"  reg [{width - 1}:0] {register} [0:{layout.words - 1}];" for register, width in netlist.registers.items()),
        *(f"  reg [{width - 1}:0] {variable};" for variable, width in netlist.variables.items()),
        "  int unsigned i;",
        f"  initial for (int unsigned first = 0; first < {layout.words}; first = first + 1) begin",
        *(f"    {register}[first] = 0;" for register in netlist.registers),
        "  end",
        "  always @(posedge clk) begin",
        # Verilator keeps a variable local to a function that begins with an assignment to it.
        "    i = 0;",
        *(f"    {variable} = 0;" for variable in netlist.variables),
    ]
    # No loops: a place in a wide word that is known when it is compiled takes a tenth of the time.
    for link in links:
        register, width = netlist.output(link.output), width_of[link.input]
        edge = [f"{link.input}[{number * width} +: {width}]" for number in range(edges[link.source])]
        if link.source is Source.ABOVE:
            places = [layout.place(-1, column) for column in range(size)]
        else:
            places = [layout.place(row, -1) for row in range(size)]
        if link.source is Source.LEFT_OR_ABOVE:
            edge += [f"{register}[{layout.place(row, 0)}]" for row in range(size - 1)]
        lines += [f"    {register}[{place}] = {value};" for place, value in zip(places, edge, strict=True)]
    last_row = [f"{netlist.output(result)}[{layout.place(size - 1, column)}]" for column in reversed(range(size))]
    lines += [
        f"    for (i = 0; i < {layout.computed}; i = i + 1) begin",
        *(f"      {statement}" for statement in netlist.statements),
        "    end",
        f"    {result} <= {{{', '.join(last_row)}}};",
        "  end",
        "endmodule",
    ]
    return "\n".join(lines) + "\n"


class _Layout:
    """Where the arrays have a register of each element.

    Rows and columns are in reverse order, so that a loop upwards meets an element before those that drive it, and can
    write over their registers. Every row has a place more, behind its first column, and there is a row more, behind the
    first one: they hold the inputs of the grid. So one loop computes all elements, and does not ask where they are.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._pitch = size + 1
        self.computed = -(-size * self._pitch // _VECTOR) * _VECTOR
        """The loop's end. What it computes for the inputs' places is written over before it is read."""
        self.words = 1 << (self.computed + self._pitch).bit_length()
        """A power of two, because Verilator compares an index with the end of any other array."""

    def place(self, row: int, column: int) -> int:
        """The index of an element; row or column -1 is an input of the grid."""
        return (self._size - 1 - row) * self._pitch + self._size - 1 - column

    def neighbour(self, link: Link) -> tuple[str, int]:
        """The output that drives an element's input, and how far behind the element's own its index is."""
        return link.output, self._pitch if link.source is Source.ABOVE else 1


class _Netlist:
    """One element: its registers, and the statements that compute them."""

    def __init__(self, element: wiring.Component, platform: object, neighbours: Mapping[str, tuple[str, int]]) -> None:
        rtlil = to_rtlil(element, "element", platform, ports_of(element))
        yosys = find_yosys(lambda version: version >= (0, 40))
        text = yosys.run(["-q", "-"], _SCRIPT.format(rtlil=rtlil), ignore_warnings=True)
        self._module: dict[str, Any] = json.loads(text[text.index("{") :])["modules"]["element"]
        self.registers: dict[str, int] = {}
        self.variables: dict[str, int] = {}
        self._bits: dict[int, tuple[str, int, int]] = {}
        """For each bit of the netlist the value that holds it, its place there, and the value's width."""
        cells = list(self._module["cells"].values())
        for number, cell in enumerate(cell for cell in cells if cell["type"] == "$dff"):
            name = self._name_of(cell["connections"]["Q"], number)
            self.registers[name] = len(cell["connections"]["Q"])
            self._hold(f"{name}[i]", cell["connections"]["Q"])
        for port, (output, distance) in neighbours.items():
            self._hold(f"{self.output(output)}[i + {distance}]", self._module["ports"][port]["bits"])
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

    def output(self, port: str) -> str:
        """The array with an output of the elements, which is one of their registers."""
        bits = self._module["ports"][port]["bits"]
        value = self._value(bits) if bits[0] in self._bits else "logic"
        register = value.removesuffix("[i]")
        if register not in self.registers:
            raise ValueError(f"output {port} of the element must be a register, not {value}")
        return register

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
