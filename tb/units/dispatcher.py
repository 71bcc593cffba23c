"""Dispatcher: random programs become the commands, events and faults that the instruction set says."""

import random
from dataclasses import dataclass, field

import cocotb

from openmxu.arch.events import Event, EventKind
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import REGISTERS, Opcode, OutputFormat, Register
from openmxu.arch.legality import Window
from openmxu.rtl.commands import ActivationKind, activation_command, host_command, matrix_command, weight_command
from openmxu.rtl.instruction_check import MemoryWindows
from openmxu.rtl.interfaces import EventLayout
from openmxu.rtl.scoreboard import QueuedUnit
from openmxu.sim.lockstep import cases
from tb.accesses import access_of
from tb.bench import CONFIG, Agent, Bench, random_generator
from tb.dispatch import Units
from tb.payloads import pack, unpack

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
    """What comes out of a case."""

    commands: dict = field(default_factory=lambda: {unit: [] for unit in QueuedUnit})
    accesses: list = field(default_factory=list)
    weights: list = field(default_factory=list)
    events: list = field(default_factory=list)
    finished: list = field(default_factory=list)  # commands before each event, which must have finished
    retired_other: int = 0


def command_of(instruction, checker):
    """The command of an instruction that goes to a unit with a queue."""
    opcode, values = instruction.format.opcode, instruction.values
    if opcode is Opcode.MATRIX_MULTIPLY:
        return pack(matrix_command(CONFIG), {**_only(values, matrix_command(CONFIG)), "format": _input(checker)})
    if opcode is Opcode.ACTIVATE:
        kind = ActivationKind.INT32 if values["output"] == OutputFormat.INT32 else ActivationKind.BYTE
        work = {key: values[key] for key in ("unified_buffer", "accumulator", "rows", "parameters")}
        output = checker.register(Register.OUTPUT_FORMAT)
        return pack(activation_command(CONFIG), {**work, "kind": kind.value, "output": output})
    if opcode is Opcode.SET_CONFIGURATION:
        load = REGISTERS[Register.LOAD_PARAMETERS].unpack(values["value"])
        work = {"unified_buffer": load["unified_buffer"], "parameters": load["first"], "rows": load["count"]}
        return pack(activation_command(CONFIG), {**work, "kind": ActivationKind.LOAD_PARAMETERS.value})
    stride = checker.register(Register.HOST_STRIDE)["stride"]
    return pack(host_command(CONFIG), {**values, "alternate": opcode in _ALTERNATE, "stride": stride})


def _input(checker):
    format = checker.register(Register.INPUT_FORMAT)
    return {"zero_point": format["zero_point"], "is_signed": format["signed"]}


def _only(values, layout):
    names = {name for name, _ in layout}
    return {name: value for name, value in values.items() if name in names}


def significant(unit, payload):
    """A command without what it does not mean: a load has no accumulators and no output format."""
    if unit is not QueuedUnit.ACTIVATION:
        return payload
    work = unpack(activation_command(CONFIG), payload)
    if work.kind == ActivationKind.LOAD_PARAMETERS.value:
        return ("load", work.unified_buffer, work.rows, work.parameters)
    return payload


def expect(case):
    """Follow a case instruction by instruction."""
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
            expected.commands[access.unit].append(significant(access.unit, command_of(instruction, checker)))
        elif opcode is Opcode.READ_WEIGHTS:
            format = checker.register(Register.WEIGHT_FORMAT)
            fetch = {"address": instruction["weights"], "tiles": instruction["tiles"]}
            zero_point = {"zero_point": format["zero_point"], "is_signed": format["signed"]}
            expected.weights.append(pack(weight_command(CONFIG), {**fetch, "format": zero_point}))
        else:
            expected.retired_other += 1
        if opcode in _EVENTS:
            tag = 0 if opcode is Opcode.HALT else instruction["tag"]
            expected.events.append(Event(_EVENTS[opcode], index, tag))
            expected.finished.append(len(expected.accesses))
        index = 0 if opcode is Opcode.HALT else index + 1
    return expected


class Host(Agent):
    """The host, and the weight path: answers events, and empties itself when it is told to."""

    def __init__(self, bench, stall, units, expected):
        self.bench, self.stall, self.units, self.expected = bench, stall, units, expected
        names = ("clear_fault", "acknowledge", "weights_settled", "weights_empty")
        self.ports = {name: bench.port(name) for name in names}
        self.outputs = {name: bench.port(name) for name in ("flush_weights", "faulted", "waiting", "retired_other")}
        self.events, self.retired_other = [], 0
        self.clears = self.acknowledges = self.may_clear = False
        self.flushing = 0
        bench.add(self)
        bench.sink("events", stall, on_transfer=self.on_event)

    def on_event(self, payload):
        event = unpack(EventLayout, payload)
        event = Event(EventKind(event.kind), event.index, event.tag, FaultCode(event.fault))
        if event.kind is not EventKind.DEBUG_TAG:
            before = self.expected.finished[len(self.events)]
            assert self.units.finished == before, f"{event} came while units work"
        self.events.append(event)

    def sample(self):
        value = {name: int(port.value) for name, port in self.outputs.items()}
        self.retired_other += value["retired_other"]
        # Weights need some cycles of flushing to be gone.
        self.flushing = self.flushing + 1 if value["flush_weights"] else 0
        eager = random.random() >= self.stall
        self.acknowledges = bool(value["waiting"]) and not self.acknowledges and eager
        self.clears = bool(value["faulted"]) and self.may_clear and not self.clears

    def drive(self):
        self.ports["clear_fault"].value = int(self.clears)
        self.ports["acknowledge"].value = int(self.acknowledges)
        self.ports["weights_settled"].value = int(random.random() >= self.stall)
        self.ports["weights_empty"].value = int(self.flushing > 3)


def set_windows(bench, case):
    """Let programs touch all of the case's memories."""
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
    units = Units(bench, stall)
    for access in expected.accesses:
        units.expect(access)
    host = Host(bench, stall, units, expected)
    instructions, weights = bench.source("instructions", stall), bench.sink("weights", stall)
    running, faulted, telling = bench.port("running"), bench.port("faulted"), bench.port("events__valid")
    for execution in case.executions():
        instructions.send(*(instruction.word for instruction in execution))
        await bench.until(lambda: instructions.is_empty, 60_000)
        await bench.steps(2)  # until the last instruction shows as running
        # The counters stand still before the event is told.
        await bench.until(lambda: not int(running.value))
        await bench.until(lambda: not int(telling.value))
        # A fault is cleared when all that it drops has been taken.
        host.may_clear = True
        await bench.until(lambda: not int(faulted.value))
        host.may_clear = False
    await bench.steps(5)
    got = {unit: [significant(unit, payload) for payload in units.received[unit]] for unit in QueuedUnit}
    assert got == expected.commands, case.seed
    assert weights.received == expected.weights, case.seed
    assert host.events == expected.events, case.seed
    assert host.retired_other == expected.retired_other, case.seed
