"""Random programs in lockstep: the Verilated device, and tests of the method with intentionally broken devices."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from openmxu.arch.events import Counter
from openmxu.arch.isa import Opcode, OutputFormat, Register, format_named
from openmxu.assembler import assemble
from openmxu.device import DeviceFault, DeviceHang
from openmxu.sim.interpreter import Interpreter
from tb.lockstep import Case, cases, configurations, first_failure, generate, run_case, shrink
from tb.lockstep.campaign import VERILATED, verilated_device
from tb.lockstep.case import HALT

PRODUCTS = (Opcode.MATRIX_MULTIPLY, Opcode.CONVOLVE)

ALL = [config for size in (2, 4, 8, 16) for config in configurations(size)]


class LacksAnInterlock(Interpreter):
    """Activates one row too few if the rows are those of the last multiplication, as with a missing interlock."""

    fresh: int | None = None

    def _step(self, translator, instruction):
        values = instruction.values
        if instruction.opcode in PRODUCTS:
            self.fresh = values["accumulator"]
        is_activation = instruction.opcode is Opcode.ACTIVATE
        if is_activation and not values["from_unified_buffer"] and self.fresh == values["source"]:
            instruction = instruction.format(**{**values, "rows": max(1, values["rows"] - 1)})
        return super()._step(translator, instruction)


class PadsBeforeTheZeroPoint(Interpreter):
    """Treats the padding of a convolution as bytes of 0, from which the zero point is subtracted."""

    def _step(self, translator, instruction):
        values, step = instruction.values, super()._step(translator, instruction)
        if instruction.opcode is not Opcode.CONVOLVE or values["wide_input"] or values["wide_weights"]:
            return step
        plane = self._checker.register(Register.CONVOLUTION_PLANE)
        zero_point = self._checker.register(Register.INPUT_FORMAT)["zero_point"]
        y, x = (
            np.arange(values[count]) * plane[stride] + values[start]
            for count, stride, start in (("height", "stride_y", "dy"), ("width", "stride_x", "dx"))
        )
        outside = (y < 0) | (y >= plane["height"])
        outside = (outside[:, np.newaxis] | (x < 0) | (x >= plane["width"])).reshape(-1)
        sums = self.accumulators[values["accumulator"] :][: len(outside)]

        def broken():
            step()
            sums[outside] -= (zero_point * self._memories.tile.sum(axis=0)).astype(np.int32)

        return broken


class KeepsTheLowTile(Interpreter):
    """Leaves the tile of low bytes in the array, instead of that of high bytes."""

    def _step(self, translator, instruction):
        if instruction.opcode not in PRODUCTS or not instruction["wide_weights"]:
            return super()._step(translator, instruction)
        tiles, kept = translator._tiles._queued, []
        low = tiles[0]
        tiles[0] = lambda: kept.append(low()) or kept[-1]
        step = super()._step(translator, instruction)

        def broken():
            step()
            self._memories.tile = kept.pop()

        return broken


class LoadsTheTableTooLate(Interpreter):
    """Uses the previous table once after a table is loaded."""

    fresh: np.ndarray | None = None

    def _step(self, translator, instruction):
        step = super()._step(translator, instruction)

        def load():
            self.fresh = self.tables.copy()
            step()

        def activate():
            loaded = self.tables.copy()
            if self.fresh is not None:
                self.tables[:], self.fresh = self.fresh, None
            step()
            self.tables[:] = loaded

        values = instruction.values
        if instruction.opcode is Opcode.SET_CONFIGURATION and values["register"] == Register.LOAD_TABLE:
            return load
        return activate if instruction.opcode is Opcode.ACTIVATE and values["table"] else step


class KeepsTilesOverHalt(Interpreter):
    def _step(self, translator, instruction):
        tiles = translator._tiles._queued
        kept = list(tiles)
        step = super()._step(translator, instruction)
        if instruction.opcode is Opcode.HALT:
            tiles.extend(kept)
            return None
        return step


class BreaksTheLastRow(Interpreter):
    def _step(self, translator, instruction):
        values, step = instruction.values, super()._step(translator, instruction)
        if instruction.opcode is not Opcode.ACTIVATE or values["output"] != OutputFormat.INT32:
            return step

        def broken():
            step()
            last = values["unified_buffer"] + 4 * values["rows"] - 1
            self.unified_buffer[last, -1] ^= 1 if last == self.config.unified_buffer_rows - 1 else 0

        return broken


class WritesOutsideItsRow(Interpreter):
    def _step(self, translator, instruction):
        values, step = instruction.values, super()._step(translator, instruction)
        writes = instruction.opcode in (Opcode.WRITE_HOST_MEMORY, Opcode.WRITE_HOST_MEMORY_ALTERNATE)
        if not writes or values["rows"] <= 3 or not values["host"]:
            return step

        def broken():
            step()
            self._memories.host[values["host"] - 1] ^= 0x80

        return broken


class Hangs(Interpreter):
    def _step(self, translator, instruction):
        if instruction.opcode is Opcode.SYNCHRONIZE and instruction["units"] == 31:
            raise DeviceHang("no progress for 1000 cycles: the matrix unit waits")
        return super()._step(translator, instruction)


class NumbersFaultsFromOne(Interpreter):
    def execute(self, program, host_memory, weight_memory):
        try:
            return super().execute(program, host_memory, weight_memory)
        except DeviceFault as fault:
            raise DeviceFault(fault.code, fault.index + 1, fault.instruction, "off by one") from fault


class TruncatesTags(Interpreter):
    def execute(self, program, host_memory, weight_memory):
        events = super().execute(program, host_memory, weight_memory)
        return [dataclasses.replace(event, tag=event.tag & 0xFFFF) for event in events]


class CountsACycleTwice(Interpreter):
    @property
    def counters(self):
        return dict.fromkeys(Counter, 0) | {Counter.CYCLES: 9, Counter.ARRAY_ACTIVE: 4, Counter.NON_MATRIX: 6}


@pytest.mark.parametrize(
    ("broken", "what", "longest"),
    [
        (LacksAnInterlock, {"unified buffer", "host memory"}, 8),
        (PadsBeforeTheZeroPoint, {"accumulators", "unified buffer"}, 6),
        (KeepsTheLowTile, {"accumulators", "unified buffer"}, 6),
        (LoadsTheTableTooLate, {"unified buffer", "host memory"}, 8),
        (KeepsTilesOverHalt, {"accumulators"}, 8),
        (BreaksTheLastRow, {"unified buffer"}, 2),
        (WritesOutsideItsRow, {"host memory"}, 2),
        (Hangs, {"outcome"}, 2),
        (NumbersFaultsFromOne, {"outcome"}, 10),
        (TruncatesTags, {"events"}, 2),
        (CountsACycleTwice, {"counters"}, 1),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_a_broken_device_is_found_and_its_program_shrunk(broken, what, longest):
    failure = first_failure(cases(1, 400, ALL), lambda case: broken(case.config))
    assert failure is not None
    assert failure.mismatch.what in what
    assert len(failure.case.instructions) <= longest
    assert run_case(failure.case, broken(failure.case.config), Interpreter(failure.case.config)) == failure.mismatch
    assert run_case(failure.case, *(Interpreter(failure.case.config) for _ in range(2))) is None


def test_the_report_is_complete_and_assembles_to_the_shrunk_program():
    failure = first_failure(cases(1, 400, ALL), lambda case: BreaksTheLastRow(case.config))
    assert f"# seed {failure.case.seed}, " in failure.report
    assert f"size={failure.case.config.size}" in failure.report
    assert str(failure.mismatch) in failure.report
    assert tuple(assemble(failure.report)) == failure.case.instructions


def test_equal_devices_run_all_cases():
    finished: list[Case] = []
    assert first_failure(cases(1, 100, ALL), lambda case: Interpreter(case.config), done=finished.append) is None
    assert [case.seed for case in finished] == list(range(1, 101))


def test_running_a_case_does_not_change_its_memories():
    case = generate(configurations(4)[0], 5, 60)
    host, weights = case.host_memory.copy(), case.weight_memory.copy()
    run_case(case, Interpreter(case.config), Interpreter(case.config))
    np.testing.assert_array_equal(case.host_memory, host)
    np.testing.assert_array_equal(case.weight_memory, weights)


def test_programs_after_a_fault_run_in_a_separate_call():
    nop, tag, bad = format_named("Nop")(), format_named("Debug_Tag")(tag=1), format_named("Convolve")()
    case = generate(configurations(2)[0], 1, 1).with_instructions([nop, HALT, bad, tag, HALT, tag, HALT, nop, HALT])
    assert case.executions() == [(nop, HALT, bad, tag, HALT), (tag, HALT, nop, HALT)]


def test_shrinking_keeps_programs_legal():
    case = generate(configurations(8)[2], 11, 80)
    wanted = {Opcode.ACTIVATE: 3, Opcode.CONVOLVE: 1}
    seen: list[Case] = []

    def has_enough(candidate: Case) -> bool:
        seen.append(candidate)
        opcodes = [instruction.format.opcode for instruction in candidate.instructions]
        return all(opcodes.count(opcode) >= count for opcode, count in wanted.items())

    short = shrink(case, has_enough)
    counts = [
        {name: i[name] for name in ("rows", "height", "width", "tiles") if name in i.values} for i in short.instructions
    ]
    names = [instruction.format.name for instruction in short.instructions]
    assert names.count("Activate") == 3
    assert names.count("Convolve") == 1
    # The other instructions make these legal: planes, formats, a tile, and a multiplication that takes it.
    assert set(names) <= {"Activate", "Convolve", "MatrixMultiply", "Read_Weights", "Set_Configuration", "Halt"}
    assert {count for fields in counts for count in fields.values()} == {1}
    assert all(candidate.faults() == [] for candidate in seen)
    assert len(seen) > 10


def test_shrinking_keeps_the_fault():
    case = generate(configurations(8)[2], 11, 40, fault_probability=1.0)
    fault = case.faults()
    assert len(fault) == 1
    short = shrink(case, lambda candidate: candidate.faults() == fault)
    assert short.faults() == fault
    assert len(short.instructions) < 12


def test_shrinking_requires_a_failing_case():
    with pytest.raises(ValueError, match="does not fail"):
        shrink(generate(configurations(2)[0], 1, 5), lambda case: False)


def test_the_verilated_device_in_lockstep(lockstep_seed, lockstep_count):
    finished: list[Case] = []
    failure = first_failure(cases(lockstep_seed, lockstep_count, VERILATED), verilated_device, done=finished.append)
    assert failure is None, f"\n{failure.report}"
    assert len(finished) == lockstep_count
