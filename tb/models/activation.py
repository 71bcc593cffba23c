"""Reference model of Activate, based on the numerics, and random instructions of every mode."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from openmxu.arch import isa
from openmxu.arch.effects import OUTPUT_BYTES, PARAMETER_ROWS, TABLE_BYTES, TABLES, table_rows
from openmxu.arch.numerics import add_scaled, elements, pool, requantize
from openmxu.rtl.dispatch.commands import ActivationKind, activation_command, activation_start
from tb.bench import CONFIG
from tb.models.payloads import pack
from tb.models.walks import is_by_parity

__all__ = ["Activation", "ActivationModel", "ElementFormat", "Load", "Window", "random_activation", "random_load"]


@dataclass(frozen=True)
class ElementFormat:
    """Format of elements in unified buffer rows."""

    zero_point: int = 0
    is_signed: bool = False
    wide: bool = False


@dataclass(frozen=True)
class Window:
    """Windows over a plane, with the members of POOLING_WINDOW and POOLING_PLANE."""

    height: int
    width: int
    stride_y: int
    stride_x: int
    pad_top: int
    pad_left: int
    plane_height: int
    plane_width: int
    output_width: int


@dataclass(frozen=True)
class Load:
    """LOAD_PARAMETERS, or LOAD_TABLE if ``count`` is 0."""

    unified_buffer: int
    first: int = 0
    count: int = 0
    table_number: int = 0

    output_rows = 0

    @property
    def unified_buffer_reads(self) -> list[range]:
        """Unified buffer rows that it reads."""
        rows = PARAMETER_ROWS * self.count if self.count else table_rows(CONFIG.size)
        return [range(self.unified_buffer, self.unified_buffer + rows)]

    @property
    def payload(self) -> int:
        """The command as a payload."""
        return pack(
            activation_command(CONFIG),
            {
                **self._start,
                "unified_buffer": self.unified_buffer,
                "parameters": self.first,
                "table_number": self.table_number,
            },
        )

    @property
    def start(self) -> int:
        """The payload that starts the command."""
        return pack(activation_start(CONFIG), self._start)

    @property
    def _start(self) -> dict[str, object]:
        kind = ActivationKind.LOAD_PARAMETERS if self.count else ActivationKind.LOAD_TABLE
        return {"kind": kind.value, "walk": {"rows": self.count}}


@dataclass(frozen=True)
class Activation:
    """Activate with the registers that it uses."""

    unified_buffer: int
    source: int
    rows: int
    parameters: int = 0
    from_unified_buffer: bool = False
    source_format: ElementFormat = ElementFormat()
    pooling: isa.Pooling = isa.Pooling.NONE
    window: Window | None = None
    operand: isa.Operand = isa.Operand.NONE
    operand_address: int = 0
    operand_format: ElementFormat = ElementFormat()
    operand_scale: int = 0
    output: dict[str, int] = field(default_factory=lambda: {"zero_point": 0, "minimum": -128, "maximum": 127})
    output_format: isa.OutputFormat = isa.OutputFormat.BYTE
    table: bool = False
    table_number: int = 0

    @property
    def is_wide(self) -> bool:
        """Whether positions of the source are two rows apart."""
        return self.from_unified_buffer and self.source_format.wide

    @property
    def output_rows(self) -> int:
        """Number of unified buffer rows that it writes."""
        return self.rows * OUTPUT_BYTES[self.output_format]

    @property
    def positions(self) -> int:
        """Number of positions in a window."""
        return 1 if self.window is None else self.window.height * self.window.width

    @property
    def by_parity(self) -> bool:
        """Whether every other row comes first."""
        return is_by_parity(
            from_unified_buffer=self.from_unified_buffer,
            pooling=self.pooling,
            operand=self.operand,
            output=self.output_format,
        )

    @property
    def passes(self) -> int:
        """Number of passes, of S/L cycles each."""
        return self.output_rows * (self.positions + (self.operand != isa.Operand.NONE))

    @property
    def unified_buffer_reads(self) -> list[range]:
        """Unified buffer rows that it reads."""
        reads = []
        if self.from_unified_buffer:
            positions = self.rows if self.window is None else self.window.plane_height * self.window.plane_width
            reads.append(range(self.source, self.source + (positions << self.source_format.wide)))
        if self.operand != isa.Operand.NONE:
            reads.append(range(self.operand_address, self.operand_address + (self.rows << self.operand_format.wide)))
        return reads

    @property
    def payload(self) -> int:
        """The command as a payload."""
        members = {name: vars(self)[name] for name in vars(self) if name not in ("source", "rows", "window")}
        for name in ("source_format", "operand_format"):
            members[name] = vars(members[name])
        return pack(activation_command(CONFIG), {**members, **self._start})

    @property
    def start(self) -> int:
        """The payload that starts the command."""
        return pack(activation_start(CONFIG), self._start)

    @property
    def _start(self) -> dict[str, object]:
        return {"kind": ActivationKind.ACTIVATE.value, "walk": self._walk}

    @property
    def _walk(self) -> dict[str, int]:
        walk = {"rows": self.rows, "wide": self.is_wide, "repeats": OUTPUT_BYTES[self.output_format] - 1}
        window = self.window
        if window is None:
            walk |= {"address": self.source, "window_height": 1, "window_width": 1}
            return walk | {"by_parity": self.by_parity, "width": -(-self.rows // 2), "stride_x": 1 + self.by_parity}
        shift = (-window.pad_top * window.plane_width - window.pad_left) << self.is_wide
        return walk | {
            "address": self.source + shift,
            "is_plane": 1,
            "width": window.output_width,
            "y": -window.pad_top,
            "x": -window.pad_left,
            "stride_y": window.stride_y,
            "stride_x": window.stride_x,
            "pitch": window.stride_y * window.plane_width,
            "plane_height": window.plane_height,
            "plane_width": window.plane_width,
            "window_height": window.height,
            "window_width": window.width,
        }


class ActivationModel:
    """Executes instructions of the activation unit one after the other.

    Attributes
    ----------
    rows : uint8 array, (unified_buffer_rows, S)
    accumulators : int32 array, (accumulator_rows, S)
        The memories; ``execute`` writes to ``rows``.
    """

    def __init__(self, rows: NDArray[np.uint8], accumulators: NDArray[np.int32]) -> None:
        self.rows = rows
        self.accumulators = accumulators
        self._biases = np.zeros((CONFIG.parameter_sets, CONFIG.size), np.int32)
        self._scales = np.zeros((CONFIG.parameter_sets, CONFIG.size), np.float32)
        self._tables = np.zeros((TABLES, TABLE_BYTES), np.uint8)

    def execute(self, item: Activation | Load) -> list[tuple[int, bytes]]:
        """Execute an instruction; returns addresses and contents of the rows that it writes, in order."""
        if isinstance(item, Load):
            self._load(item)
            return []
        results = self._results(item)
        shape = (item.rows, CONFIG.size, OUTPUT_BYTES[item.output_format])
        bytes_ = results.astype("<i4").view(np.uint8).reshape(item.rows, CONFIG.size, 4)[:, :, : shape[2]]
        if item.table:
            bytes_ = self._tables[item.table_number][bytes_]
        written = bytes_.transpose(0, 2, 1).reshape(-1, CONFIG.size)
        self.rows[item.unified_buffer : item.unified_buffer + len(written)] = written
        return [(item.unified_buffer + index, row.tobytes()) for index, row in enumerate(written)]

    def _load(self, item: Load) -> None:
        if not item.count:
            table = self.rows[item.unified_buffer : item.unified_buffer + table_rows(CONFIG.size)]
            self._tables[item.table_number] = table.reshape(-1)
        for number in range(item.count):
            start = item.unified_buffer + PARAMETER_ROWS * number
            columns = np.ascontiguousarray(self.rows[start : start + PARAMETER_ROWS].T)
            self._biases[item.first + number] = columns[:, :4].copy().view("<i4")[:, 0]
            self._scales[item.first + number] = columns[:, 4:].copy().view("<f4")[:, 0]

    def _results(self, item: Activation) -> NDArray[np.int32]:
        bias, scale = self._biases[item.parameters], self._scales[item.parameters]
        total = self._pooled(item) + bias
        if item.operand != isa.Operand.NONE:
            count = item.rows << item.operand_format.wide
            second = self._elements(item.operand_address, count, item.operand_format)
        if item.operand == isa.Operand.MULTIPLY:
            total = (total.astype(np.int64) * second).astype(np.int32)
        if item.output_format == isa.OutputFormat.INT32:
            return total
        if item.operand == isa.Operand.ADD:
            second_scale = np.array([item.operand_scale], np.uint32).view(np.float32)
            return add_scaled(total, scale, second, second_scale, **item.output)
        return requantize(total, scale, **item.output)

    def _elements(self, first: int, rows: int, format: ElementFormat) -> NDArray[np.int32]:
        return elements(self.rows[first : first + rows], format.zero_point, format.is_signed, format.wide)

    def _pooled(self, item: Activation) -> NDArray[np.int32]:
        window = item.window
        count = item.rows if window is None else window.plane_height * window.plane_width
        if item.from_unified_buffer:
            source = self._elements(item.source, count << item.source_format.wide, item.source_format)
        else:
            source = self.accumulators[item.source : item.source + count]
        if window is None:
            return source
        windows = np.zeros((item.rows, item.positions, CONFIG.size), np.int32)
        inside = np.zeros((item.rows, item.positions), bool)
        for result in range(item.rows):
            top = result // window.output_width * window.stride_y - window.pad_top
            left = result % window.output_width * window.stride_x - window.pad_left
            for position in range(item.positions):
                y, x = top + position // window.width, left + position % window.width
                if 0 <= y < window.plane_height and 0 <= x < window.plane_width:
                    windows[result, position] = source[y * window.plane_width + x]
                    inside[result, position] = True
        return pool(windows, inside, item.pooling == isa.Pooling.MAX)


def random_load(rng: np.random.Generator) -> Load:
    """A load of parameters or of a table, at a random address."""
    if rng.random() < 0.4:
        first = int(rng.integers(0, CONFIG.unified_buffer_rows - table_rows(CONFIG.size) + 1))
        return Load(first, table_number=int(rng.integers(TABLES)))
    count = int(rng.integers(1, CONFIG.parameter_sets + 1))
    last = CONFIG.unified_buffer_rows // PARAMETER_ROWS - count
    return Load(
        int(rng.integers(0, last + 1)) * PARAMETER_ROWS,
        int(rng.integers(0, CONFIG.parameter_sets - count + 1)),
        count,
    )


def random_activation(rng: np.random.Generator, *, most_passes: int = 200) -> Activation:
    """An instruction of a random mode that does not write rows that it reads."""
    while True:
        item = _attempt(rng)
        if item is not None and item.passes <= most_passes:
            return item


def _random_format(rng: np.random.Generator) -> ElementFormat:
    is_signed, wide = bool(rng.integers(2)), bool(rng.integers(2))
    values = 1 << (16 if wide else 8)
    low = -values // 2 if is_signed else 0
    zero_point = rng.choice([0, low, low + values - 1, rng.integers(low, low + values)])
    return ElementFormat(int(max(low, zero_point)), is_signed, wide)


def _random_window(rng: np.random.Generator, rows: int) -> Window:
    height, width = (int(rng.choice([1, 2, 3, rng.integers(1, 6)])) for _ in range(2))
    return Window(
        height=height,
        width=width,
        stride_y=int(rng.choice([1, 2, rng.integers(0, 5)])),
        stride_x=int(rng.choice([1, 2, rng.integers(0, 5)])),
        pad_top=int(rng.choice([0, rng.integers(0, height), rng.integers(0, 256)], p=[0.5, 0.45, 0.05])),
        pad_left=int(rng.choice([0, rng.integers(0, width), rng.integers(0, 256)], p=[0.5, 0.45, 0.05])),
        plane_height=int(rng.integers(1, 6)),
        plane_width=int(rng.integers(1, 6)),
        output_width=int(rng.choice([1, rng.integers(1, 6), rows, 40000])),
    )


def _random_output(rng: np.random.Generator, output_format: isa.OutputFormat) -> dict[str, int]:
    # Mostly the whole range of a type, so that not all results are clamped.
    if output_format is isa.OutputFormat.WORD and rng.random() < 0.7:
        return {"zero_point": int(rng.integers(-1000, 1000)), "minimum": -(1 << 15), "maximum": (1 << 15) - 1}
    if output_format is isa.OutputFormat.BYTE and rng.random() < 0.7:
        low = int(rng.choice([-128, 0]))
        return {"zero_point": int(rng.integers(low, low + 256)), "minimum": low, "maximum": low + 255}
    if output_format is isa.OutputFormat.BYTE and rng.random() < 0.8:
        limits = sorted(rng.choice([rng.integers(-128, 256), 0, 255, -128, 127], 2).tolist())
        return {"zero_point": int(rng.integers(-128, 256)), "minimum": limits[0], "maximum": limits[1]}
    low, high = sorted(rng.choice([-(1 << 15), (1 << 15) - 1, (1 << 17) - 1, *rng.integers(-(1 << 17), 1 << 17, 2)], 2))
    return {"zero_point": int(rng.integers(-1000, 1000)), "minimum": int(low), "maximum": int(high)}


def _attempt(rng: np.random.Generator) -> Activation | None:
    rows = int(rng.choice([1, 2, rng.integers(1, 20)]))
    pooling = isa.Pooling(int(rng.choice(3, p=[0.5, 0.25, 0.25])))
    output_format = isa.OutputFormat(int(rng.choice(3, p=[0.6, 0.2, 0.2])))
    operands = [isa.Operand.NONE, isa.Operand.MULTIPLY, isa.Operand.ADD]
    operand = operands[int(rng.choice(2 if output_format is isa.OutputFormat.INT32 else 3))]
    window = _random_window(rng, rows) if pooling != isa.Pooling.NONE else None
    from_unified_buffer = bool(rng.integers(2))
    source_format = _random_format(rng)
    sources = rows if window is None else window.plane_height * window.plane_width
    source_rows = sources << source_format.wide if from_unified_buffer else sources
    memory = CONFIG.unified_buffer_rows if from_unified_buffer else CONFIG.accumulator_rows
    operand_format = _random_format(rng)
    operand_rows = rows << operand_format.wide
    output_rows = rows * OUTPUT_BYTES[output_format]
    if source_rows > memory or operand_rows > CONFIG.unified_buffer_rows or output_rows > CONFIG.unified_buffer_rows:
        return None
    item = Activation(
        unified_buffer=int(rng.integers(0, CONFIG.unified_buffer_rows - output_rows + 1)),
        source=int(rng.integers(0, memory - source_rows + 1)),
        rows=rows,
        parameters=int(rng.integers(0, CONFIG.parameter_sets)),
        from_unified_buffer=from_unified_buffer,
        source_format=source_format,
        pooling=pooling,
        window=window,
        operand=operand,
        operand_address=int(rng.integers(0, CONFIG.unified_buffer_rows - operand_rows + 1)),
        operand_format=operand_format,
        operand_scale=_random_scale(rng),
        output=_random_output(rng, output_format),
        output_format=output_format,
        table=output_format is isa.OutputFormat.BYTE and rng.random() < 0.4,
        table_number=int(rng.integers(TABLES)),
    )
    written = range(item.unified_buffer, item.unified_buffer + output_rows)
    if any(max(read.start, written.start) < min(read.stop, written.stop) for read in item.unified_buffer_reads):
        return None
    return item


def _random_scale(rng: np.random.Generator) -> int:
    usual = np.float32(rng.choice([-1, 1]) * 10.0 ** rng.uniform(-6, 1))
    return int(usual.view(np.uint32)) if rng.random() < 0.8 else int(rng.integers(0, 1 << 32))
