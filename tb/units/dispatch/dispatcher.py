"""Dispatcher: random programs become the commands, events and faults that the instruction set specifies."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

import cocotb

from openmxu.arch.events import Event, EventKind
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import REGISTERS, Opcode, Operand, Pooling, Register
from openmxu.arch.legality import Window
from openmxu.rtl.common.interfaces import EventLayout
from openmxu.rtl.dispatch.check.memory_range import MemoryWindows
from openmxu.rtl.dispatch.commands import (
    ActivationKind,
    activation_command,
    activation_start,
    activation_walk,
    host_command,
    loads_weights,
    matrix_command,
    weight_command,
    write_command,
)
from openmxu.rtl.dispatch.scoreboard import QueuedUnit
from tb.bench import CONFIG, Agent, Bench, random_generator
from tb.lockstep import cases
from tb.models.accesses import access_of
from tb.models.dispatch import Units
from tb.models.payloads import pack, unpack
from tb.models.walks import is_by_parity

CASES = 5

_EVENTS = {
    Opcode.HALT: EventKind.HALT,
    Opcode.HOST_SYNCHRONIZE: EventKind.HOST_SYNCHRONIZE,
    Opcode.INTERRUPT_HOST: EventKind.INTERRUPT,
    Opcode.DEBUG_TAG: EventKind.DEBUG_TAG,
}
_ALTERNATE = (Opcode.READ_HOST_MEMORY_ALTERNATE, Opcode.WRITE_HOST_MEMORY_ALTERNATE)


@dataclass
class Expected:
    """Expected outputs for a case."""

    commands: dict = field(default_factory=lambda: {unit: [] for unit in QueuedUnit})
    accesses: list = field(default_factory=list)
    weights: list = field(default_factory=list)
    events: list = field(default_factory=list)
    finished: list = field(default_factory=list)  # number of commands that must have finished before each event
    retired_other: int = 0


def command_of(instruction, checker):
    """The meaningful fields of the command of an instruction, which must be for a unit with a queue."""
    opcode, values = instruction.format.opcode, instruction.values
    if opcode in (Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE):
        return multiplication(opcode, values, checker)
    if opcode is Opcode.ACTIVATE:
        return activation(values, checker)
    if opcode is Opcode.SET_CONFIGURATION:
        register = REGISTERS[values["register"]]
        load = register.unpack(values["value"])
        if register.number is Register.LOAD_TABLE:
            fields = {"unified_buffer": load["unified_buffer"], "table_number": load["number"]}
            return {"kind": ActivationKind.LOAD_TABLE.value, **fields}
        return {
            "kind": ActivationKind.LOAD_PARAMETERS.value,
            "unified_buffer": load["unified_buffer"],
            "parameters": load["first"],
            "walk": {"rows": load["count"]},
        }
    if opcode is Opcode.LOAD_WEIGHTS:
        return {"unified_buffer": values["unified_buffer"], "rows": CONFIG.size, "alternate": 0, "to_weights": 1}
    stride = checker.register(Register.HOST_STRIDE)["stride"]
    fields = {name: values[name] for name in ("host", "unified_buffer", "rows")}
    is_write = opcode in (Opcode.WRITE_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY_ALTERNATE)
    to_weights = {"to_weights": 0} if is_write and loads_weights(CONFIG) else {}
    return {**fields, "alternate": int(opcode in _ALTERNATE), "stride": stride, **to_weights}


def multiplication(opcode, values, checker):
    """The command of a MatrixMultiply or a Convolve."""
    flags = {name: values[name] for name in ("accumulate", "next_tile", "wide_weights")}
    wide = values["wide_input"]
    if opcode is Opcode.MATRIX_MULTIPLY:
        walk = {"address": values["unified_buffer"], "rows": values["rows"], "wide": wide, "is_plane": 0, "stride_x": 1}
    else:
        plane = checker.register(Register.CONVOLUTION_PLANE)
        rows = values["height"] * values["width"]
        address = values["unified_buffer"], values["dy"], values["dx"]
        walk = plane_walk(address, wide, plane, plane, CONFIG.unified_buffer_address_width)
        walk |= {"rows": rows, "width": values["width"]}
    walk |= {"target": values["accumulator"]}
    return {**flags, "walk": walk, "format": _operands(checker.register(Register.INPUT_FORMAT))}


def plane_walk(address, wide, strides, plane, address_width):
    """Fields of a walk over a plane that do not depend on its outputs; ``address`` is (first row, y, x)."""
    first, y, x = address
    return {
        "address": (first + ((y * plane["width"] + x) << wide)) % (1 << address_width),
        "wide": wide,
        "is_plane": 1,
        "y": y,
        "x": x,
        "stride_y": strides["stride_y"],
        "stride_x": strides["stride_x"],
        "pitch": strides["stride_y"] * plane["width"] % (1 << address_width),
        "plane_height": plane["height"],
        "plane_width": plane["width"],
    }


def activation(values, checker):
    """The command of an Activate; the second operand's fields only if there is one."""
    names = ("unified_buffer", "from_unified_buffer", "pooling", "operand", "parameters", "table", "table_number")
    command = {name: values[name] for name in names}
    source, second = checker.register(Register.SOURCE_FORMAT), checker.register(Register.OPERAND_FORMAT)
    wide = values["from_unified_buffer"] & source["wide"]
    decisive = ("from_unified_buffer", "pooling", "operand", "output")
    by_parity = int(is_by_parity(**{name: values[name] for name in decisive}))
    if values["pooling"] == Pooling.NONE:
        walk = {"address": values["source"], "wide": wide, "is_plane": 0}
        walk |= {"window_height": 1, "window_width": 1, "stride_x": 1 + by_parity}
        walk |= {"width": -(-values["rows"] // 2)} if by_parity else {}
    else:
        window, plane = checker.register(Register.POOLING_WINDOW), checker.register(Register.POOLING_PLANE)
        address = values["source"], -window["pad_top"], -window["pad_left"]
        walk = plane_walk(address, wide, window, plane, activation_walk(CONFIG)["address"].width)
        walk |= {"window_height": window["height"], "window_width": window["width"], "width": plane["output_width"]}
    walk |= {"rows": values["rows"], "repeats": (0, 1, 3)[values["output"]], "by_parity": by_parity}
    command |= {
        "kind": ActivationKind.ACTIVATE.value,
        "walk": walk,
        "source_format": _elements(source),
        "output": checker.register(Register.OUTPUT_FORMAT),
        "output_format": values["output"],
    }
    if values["operand"] != Operand.NONE:
        command |= {
            "operand_address": checker.register(Register.OPERAND_ADDRESS)["unified_buffer"],
            "operand_format": _elements(second),
            "operand_scale": checker.register(Register.OPERAND_SCALE)["scale"],
        }
    return command


def _operands(format):
    return {"zero_point": format["zero_point"], "is_signed": format["signed"]}


def _elements(format):
    return {**_operands(format), "wide": format["wide"]}


_LAYOUTS = {
    QueuedUnit.HOST_READ: host_command(CONFIG),
    QueuedUnit.HOST_WRITE: write_command(CONFIG),
    QueuedUnit.MATRIX: matrix_command(CONFIG),
    QueuedUnit.ACTIVATION: activation_start(CONFIG),
}


def assert_equal(layout, payload, command, path):
    """Check that the payload has every field of ``command`` with the same value."""

    def compare(got, expected, path):
        for name, value in expected.items():
            if isinstance(value, Mapping):
                compare(getattr(got, name), value, f"{path}.{name}")
            else:
                assert getattr(got, name) == value, f"{path}.{name} is {getattr(got, name)}, not {value}"

    compare(unpack(layout, payload), command, path)


def expect(case):
    """Determine the expected outputs of a case, one instruction after the other."""
    expected, index, dropping = Expected(), 0, False
    checker = case.checker()
    for instruction in case.instructions:
        if dropping:
            dropping = instruction.word & 0xFF != Opcode.HALT
            continue
        fault = checker.check(instruction)
        if fault is not FaultCode.NONE:
            checker.begin_program()
            expected.events.append(Event(EventKind.FAULT, index, fault=fault))
            expected.finished.append(len(expected.accesses))
            index, dropping = 0, True
            continue
        opcode = instruction.format.opcode
        access = access_of(instruction, checker)
        if access is not None:
            expected.accesses.append(access)
            expected.commands[access.unit].append(command_of(instruction, checker))
            if opcode is Opcode.LOAD_WEIGHTS:
                format = _operands(checker.register(Register.WEIGHT_FORMAT))
                load = {"tiles": 1, "format": format, "from_buffer": 1, "transposed": instruction["transposed"]}
                expected.weights.append(load)
        elif opcode is Opcode.READ_WEIGHTS:
            format = checker.register(Register.WEIGHT_FORMAT)
            fetch = {"address": instruction["weights"], "tiles": instruction["tiles"]}
            fetch |= {"format": _operands(format), "wide": format["wide"]}
            fetch |= {"from_buffer": 0} if loads_weights(CONFIG) else {}
            expected.weights.append(fetch)
        else:
            expected.retired_other += 1
        if opcode in _EVENTS:
            tag = 0 if opcode is Opcode.HALT else instruction["tag"]
            expected.events.append(Event(_EVENTS[opcode], index, tag))
            expected.finished.append(len(expected.accesses))
        index = 0 if opcode is Opcode.HALT else index + 1
    return expected


class Host(Agent):
    """The host and the weight path: acknowledges events, clears faults, and empties the weights when flushed."""

    def __init__(self, bench, stall, units, expected):
        self.bench, self.stall, self.units, self.expected = bench, stall, units, expected
        names = ("clear_fault", "acknowledge", "writing", "weights_settled", "weights_empty")
        self.ports = {name: bench.port(name) for name in names}
        self.outputs = {name: bench.port(name) for name in ("flush_weights", "faulted", "waiting", "retired_other")}
        self.events, self.retired_other = [], 0
        self.clears = self.acknowledges = self.may_clear = False
        self.flushing = 0
        self.known, self.writing = 0, 0  # instructions that have ended, and cycles until all is written
        bench.add(self)
        bench.sink("events", stall, on_transfer=self.on_event)

    def on_event(self, payload):
        event = unpack(EventLayout, payload)
        event = Event(EventKind(event.kind), event.index, event.tag, FaultCode(event.fault))
        if event.kind is not EventKind.DEBUG_TAG:
            before = self.expected.finished[len(self.events)]
            assert self.units.finished == before, f"{event} came while units work"
            assert not self.writing, f"{event} came before everything was written"
        self.events.append(event)

    def sample(self):
        value = {name: int(port.value) for name, port in self.outputs.items()}
        self.retired_other += value["retired_other"]
        # Emptying the weight path takes some cycles of flushing.
        self.flushing = self.flushing + 1 if value["flush_weights"] else 0
        eager = random.random() >= self.stall
        self.acknowledges = bool(value["waiting"]) and not self.acknowledges and eager
        self.clears = bool(value["faulted"]) and self.may_clear and not self.clears

    def drive(self):
        self.ports["clear_fault"].value = int(self.clears)
        self.ports["acknowledge"].value = int(self.acknowledges)
        self.writing = max(0, self.writing - 1)
        if self.units.finished > self.known:
            self.known, self.writing = self.units.finished, random.randrange(12)
        self.ports["writing"].value = int(self.writing > 0)
        self.ports["weights_settled"].value = int(random.random() >= self.stall)
        self.ports["weights_empty"].value = int(self.flushing > 3)


class ActivationWork(Agent):
    """Collects the commands queued for the parts of the activation unit."""

    def __init__(self, bench):
        self.work, self.queued = bench.port("activation_work"), bench.port("activation_queued")
        self.received = []
        bench.add(self)

    def sample(self):
        if int(self.queued.value):
            self.received.append(int(self.work.value))


def set_windows(bench, case):
    """Set the windows to the whole memories of the case."""
    host, weights = Window(0, case.host_memory.size), Window(0, case.weight_memory.size)
    bench.port("windows").value = pack(
        MemoryWindows(CONFIG),
        {
            "host_base": host.base,
            "host_limit": host.limit,
            "weight_base": weights.base,
            "weight_limit": weights.limit,
        },
    )


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4, 0.8])
async def programs(dut, stall):
    seed = int(random_generator().integers(1 << 30))
    for case in cases(seed, CASES, [CONFIG]):
        await run_case(dut, case, stall)


async def run_case(dut, case, stall):
    bench = await Bench.start(dut, "dispatcher")
    set_windows(bench, case)
    expected = expect(case)
    for name in ("scrubs", "clear_registers"):
        bench.port(name).value = 0
    units = Units(bench, stall)
    for access in expected.accesses:
        units.expect(access)
    host = Host(bench, stall, units, expected)
    work = ActivationWork(bench)
    instructions, weights = bench.source("instructions", stall), bench.sink("weights", stall)
    running, faulted, event_valid = bench.port("running"), bench.port("faulted"), bench.port("events__valid")
    for execution in case.executions():
        instructions.send(*(instruction.word for instruction in execution))
        await bench.until(lambda: instructions.is_empty, 60_000)
        await bench.steps(2)  # until `running` is set for the last instruction
        # The counters stop before the event is sent.
        await bench.until(lambda: not int(running.value))
        await bench.until(lambda: not int(event_valid.value))
        # A fault may only be cleared after all instructions that it drops have been taken.
        host.may_clear = True
        await bench.until(lambda: not int(faulted.value))
        host.may_clear = False
    await bench.steps(5)
    for unit in QueuedUnit:
        for payload, command in zip(units.received[unit], expected.commands[unit], strict=True):
            layout = _LAYOUTS[unit]
            shown = {name: value for name, value in command.items() if name in layout.members}
            assert_equal(layout, payload, shown, unit.name.lower())
    for payload, command in zip(work.received, expected.commands[QueuedUnit.ACTIVATION], strict=True):
        assert_equal(activation_command(CONFIG), payload, command, "activation work")
    for payload, command in zip(weights.received, expected.weights, strict=True):
        assert_equal(weight_command(CONFIG), payload, command, "weights")
    assert host.events == expected.events, case.seed
    assert host.retired_other == expected.retired_other, case.seed
