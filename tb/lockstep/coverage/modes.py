"""Coverage of every mode of every instruction, of every register, and of the number formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product

import numpy as np

from openmxu.arch.config import Config
from openmxu.arch.effects import table_rows
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import FORMATS, REGISTERS, Opcode, Operand, OutputFormat, Pooling, Register, Unit
from tb.lockstep.coverage.bins import Bin, have_load_weights
from tb.lockstep.programs.steps import Step

__all__ = ["Modes"]

_MULTIPLICATIONS = {Opcode.MATRIX_MULTIPLY: "MatrixMultiply", Opcode.CONVOLVE: "Convolve"}
_BYTES = {
    Register.INPUT_FORMAT: ("uint8", "int8"),
    Register.WEIGHT_FORMAT: ("uint8", "int8"),
    Register.SOURCE_FORMAT: ("uint8", "int8", "uint16", "int16"),
    Register.OPERAND_FORMAT: ("uint8", "int8", "uint16", "int16"),
}
_ZERO_POINTS = ("lowest", "between", "highest")
_LOWEST = {"uint8": 0, "int8": -128, "uint16": 0, "int16": -32768}
_HIGHEST = {"uint8": 255, "int8": 127, "uint16": 65535, "int16": 32767}
_SCALES = ("zero", "subnormal", "normal", "infinity", "NaN")
_ROWS = ("1", "2 or 3", "4 or more")
_SOURCES = ("accumulators", "bytes", "16-bit words")
_POOLINGS = {Pooling.NONE: "rows", Pooling.MAX: "maximum", Pooling.AVERAGE: "sum"}
_NO_OPERAND = "no operand"
_OPERANDS = {
    Operand.ADD: ("add bytes", "add words"),
    Operand.MULTIPLY: ("multiply by bytes", "multiply by words"),
}
_OPERAND_NAMES = (_NO_OPERAND, *chain(*_OPERANDS.values()))
_OUTPUTS = ("BYTE", "BYTE by table", "WORD", "INT32")
_LANES = ("one lane", "some lanes", "all lanes")


class Modes:
    """Observes modes of instructions in a case."""

    def __init__(self, config: Config) -> None:
        self._lanes = _lanes(config)

    @staticmethod
    def declared(configs: Sequence[Config]) -> dict[str, list[str]]:
        """All bins."""
        has_table = any(table_rows(config.size) <= config.unified_buffer_rows for config in configs)
        registers = [register.name for register in REGISTERS if register.number != Register.LOAD_TABLE or has_table]
        lanes = [name for name in _LANES if name in {_lanes(config) for config in configs}]
        return {
            "instructions": [
                format.name
                for format in FORMATS
                if format.opcode is not Opcode.LOAD_WEIGHTS or have_load_weights(configs)
            ],
            "registers written": registers,
            "multiplications": [
                f"{name}, {sums}, {tile}, {inputs} inputs, {weights} weights"
                for name, sums, tile, inputs, weights in product(
                    _MULTIPLICATIONS.values(), ("overwrites", "accumulates"), ("next", "same"), (8, 16), (8, 16)
                )
                if not (tile == "same" and weights == 16)  # faults
            ],
            "rows": [
                f"{rows} of {name}"
                for rows, name in product(_ROWS, [*_MULTIPLICATIONS.values(), "Activate", "a read", "a write"])
            ],
            "Activate": [
                f"{source}, {pooling}, {operand}, {output}"
                for source, pooling, operand, output in product(_SOURCES, _POOLINGS.values(), _OPERAND_NAMES, _OUTPUTS)
                if not (operand in _OPERANDS[Operand.ADD] and output == "INT32")  # faults
            ],
            "lanes": [
                f"{name}: {mode}"
                for name, mode in product(lanes, [*_SOURCES, *_POOLINGS.values(), *_OPERAND_NAMES, *_OUTPUTS])
            ],
            "number formats": [
                *(
                    f"{register.name} {type_}, zero point {place}"
                    for register, types in _BYTES.items()
                    for type_, place in product(types, _ZERO_POINTS)
                ),
                "WEIGHT_FORMAT 16-bit",
                *(f"OUTPUT_FORMAT {limits}" for limits in ("uint8", "int8", "16-bit", "larger", "crossed")),
                *(f"OPERAND_SCALE {kind}" for kind in _SCALES),
                "OPERAND_SCALE negative",
            ],
            "Synchronize": [unit.name for unit in Unit] + ["none", "all"],
        }

    def observe(self, step: Step) -> Iterator[Bin]:
        """The bins hit by an instruction."""
        if step.fault is not FaultCode.NONE:
            return
        yield "instructions", step.instruction.name
        values, opcode = step.values, step.opcode
        match opcode:
            case Opcode.SET_CONFIGURATION:
                register = REGISTERS[values["register"]]
                yield "registers written", register.name
                yield from _formats(register.number, register.unpack(values["value"]))
            case Opcode.MATRIX_MULTIPLY | Opcode.CONVOLVE:
                yield from self._multiplication(opcode, values)
            case Opcode.ACTIVATE:
                yield "rows", f"{_rows(values['rows'])} of Activate"
                modes = _activation(step)
                yield "Activate", ", ".join(modes)
                for mode in modes:
                    yield "lanes", f"{self._lanes}: {mode}"
            case Opcode.READ_HOST_MEMORY | Opcode.READ_HOST_MEMORY_ALTERNATE:
                yield "rows", f"{_rows(values['rows'])} of a read"
            case Opcode.WRITE_HOST_MEMORY | Opcode.WRITE_HOST_MEMORY_ALTERNATE:
                yield "rows", f"{_rows(values['rows'])} of a write"
            case Opcode.SYNCHRONIZE:
                units = [unit.name for unit in Unit if values["units"] >> unit & 1]
                yield "Synchronize", "none" if not units else "all" if len(units) == len(Unit) else units[0]

    def _multiplication(self, opcode: Opcode, values: dict[str, int]) -> Iterator[Bin]:
        name = _MULTIPLICATIONS[opcode]
        sums = "accumulates" if values["accumulate"] else "overwrites"
        tile = "next" if values["next_tile"] else "same"
        inputs, weights = 8 << values["wide_input"], 8 << values["wide_weights"]
        yield "multiplications", f"{name}, {sums}, {tile}, {inputs} inputs, {weights} weights"
        rows = values["rows"] if opcode is Opcode.MATRIX_MULTIPLY else values["height"] * values["width"]
        yield "rows", f"{_rows(rows)} of {name}"


def _lanes(config: Config) -> str:
    if config.activation_lanes == config.size:
        return "all lanes"
    return "one lane" if config.activation_lanes == 1 else "some lanes"


def _rows(count: int) -> str:
    return "1" if count == 1 else "2 or 3" if count < 4 else "4 or more"


def _activation(step: Step) -> tuple[str, str, str, str]:
    """The modes of an Activate: source, pooling, operand and output."""
    values = step.values
    source = "accumulators"
    if values["from_unified_buffer"]:
        source = _SOURCES[1 + step.register(Register.SOURCE_FORMAT)["wide"]]
    operand = _NO_OPERAND
    if values["operand"] != Operand.NONE:
        operand = _OPERANDS[Operand(values["operand"])][step.register(Register.OPERAND_FORMAT)["wide"]]
    output = OutputFormat(values["output"]).name + (" by table" if values["table"] else "")
    return source, _POOLINGS[Pooling(values["pooling"])], operand, output


def _formats(register: Register, fields: dict[str, int]) -> Iterator[Bin]:
    match register:
        case Register.WEIGHT_FORMAT if fields["wide"]:
            yield "number formats", "WEIGHT_FORMAT 16-bit"
        case Register.INPUT_FORMAT | Register.WEIGHT_FORMAT | Register.SOURCE_FORMAT | Register.OPERAND_FORMAT:
            type_ = _BYTES[register][2 * fields.get("wide", 0) + fields["signed"]]
            zero_point = fields["zero_point"]
            place = {_LOWEST[type_]: "lowest", _HIGHEST[type_]: "highest"}.get(zero_point, "between")
            yield "number formats", f"{register.name} {type_}, zero point {place}"
        case Register.OUTPUT_FORMAT:
            yield "number formats", f"OUTPUT_FORMAT {_limits(fields['minimum'], fields['maximum'])}"
        case Register.OPERAND_SCALE:
            scale = np.array(fields["scale"], np.uint32).view(np.float32)
            yield "number formats", f"OPERAND_SCALE {_scale(scale)}"
            if scale < 0:
                yield "number formats", "OPERAND_SCALE negative"


def _limits(minimum: int, maximum: int) -> str:
    if minimum > maximum:
        return "crossed"
    for name, low, high in (("uint8", 0, 255), ("int8", -128, 127), ("16-bit", -32768, 65535)):
        if low <= minimum and maximum <= high:
            return name
    return "larger"


def _scale(scale: np.ndarray) -> str:
    if np.isnan(scale):
        return "NaN"
    if np.isinf(scale):
        return "infinity"
    if scale == 0:
        return "zero"
    return "subnormal" if abs(scale) < np.finfo(np.float32).tiny else "normal"
