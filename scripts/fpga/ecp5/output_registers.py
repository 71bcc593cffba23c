"""Merges registers at the outputs of block RAM into the block's output registers, which Yosys does not use on ECP5.

A word leaves a block of ECP5 6 ns after the clock edge, and its output register within 1 ns: the rest of the cycle is
available for routing. Vendors' tools do the same.
"""

from __future__ import annotations

from typing import Any

from scripts.fpga.ecp5.connections import readers

__all__ = ["merge_output_registers"]

_BLOCK, _REGISTER = "DP16KD", "TRELLIS_FF"
_OUTPUTS = 18
"""Bits of each of the two ports."""

_WIDEST = 36
"""Width of a word that uses both ports, which is read with the controls of port B."""


def merge_output_registers(netlist: dict[str, Any], top: str) -> int:
    """Merge the registers in a netlist of Yosys, in place.

    Either all outputs of a port are registered or none: each output in use must drive exactly one flip-flop, which is
    always enabled, is never reset, starts with 0 and has the port's clock.

    Parameters
    ----------
    netlist
        The contents of Yosys' JSON file.
    top
        The flattened module.

    Returns
    -------
    int
        Number of flip-flops removed.
    """
    module = netlist["modules"][top]
    cells = module["cells"]
    reads = readers(module)
    merged = 0
    for block in [cell for cell in cells.values() if cell["type"] == _BLOCK]:
        parameters = block["parameters"]
        is_wide = _number(parameters["DATA_WIDTH_B"]) == _WIDEST
        for ports in ("AB",) if is_wide else ("A", "B"):
            outputs = [
                name
                for name in (f"DO{port}{index}" for port in ports for index in range(_OUTPUTS))
                if reads[_bit(block, name)]
            ]
            registers = [_register(cells, reads[_bit(block, name)], _clock(block, ports[-1])) for name in outputs]
            if not outputs or None in registers or any(parameters[f"REGMODE_{port}"] != "NOREG" for port in ports):
                continue
            for port in ports:
                parameters[f"REGMODE_{port}"] = "OUTREG"
                block["port_directions"][f"OCE{port}"] = "input"
                block["connections"][f"OCE{port}"] = ["1"]
            for output, register in zip(outputs, registers, strict=True):
                block["connections"][output] = cells.pop(register)["connections"]["Q"]
            merged += len(registers)
    return merged


def _register(cells: dict[str, Any], pins: list[tuple[str, str]], clock: tuple[Any, str]) -> str | None:
    """The only flip-flop that reads a bit, if the block's register can replace it."""
    (name, port), *others = pins
    if others or port not in ("DI", "M") or cells[name]["type"] != _REGISTER:
        return None
    register = cells[name]
    parameters = {key: str(value).strip() for key, value in register["parameters"].items()}
    can = (
        _clock(register, "") == clock
        and parameters.get("CEMUX") == "1"
        and parameters.get("REGSET", "RESET") == "RESET"
        and _bit(register, "LSR") in (None, "0")
    )
    return name if can else None


def _clock(cell: dict[str, Any], port: str) -> tuple[Any, str]:
    """The net and the edge of a cell's clock."""
    inverts = str(cell["parameters"].get(f"CLK{port}MUX", f"CLK{port}")).strip() == "INV"
    return _bit(cell, f"CLK{port}"), "falling" if inverts else "rising"


def _bit(cell: dict[str, Any], port: str) -> Any:
    bits = cell["connections"].get(port)
    return bits[0] if bits else None


def _number(value: int | str) -> int:
    return value if isinstance(value, int) else int(value, 2)
