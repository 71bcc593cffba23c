"""Instruction check against ``LegalityChecker``: equal faults for all words, and the right ranges of legal ones."""

import random
from collections import deque

import cocotb

from openmxu.arch.faults import CORE_FAULTS, FaultCode
from openmxu.arch.isa import WORD_BITS, Instruction
from openmxu.arch.legality import LegalityChecker, Window
from openmxu.rtl.dispatch.check.instruction_ranges import ranges_layout
from openmxu.rtl.dispatch.check.memory_range import MemoryWindows
from openmxu.rtl.dispatch.configuration_registers import configuration_layout
from tb.bench import CONFIG, Bench, random_generator
from tb.lockstep import cases
from tb.lockstep.programs.faulting import faulting_instructions
from tb.models.accesses import access_of, configuration
from tb.models.payloads import pack, unpack

CASES = 12


def words(rng):
    """Instructions, each with the checker before it: legal ones, faults of every kind, and words with inverted bits."""
    for case in cases(int(rng.integers(1 << 30)), CASES, [CONFIG]):
        checker = case.checker()
        for instruction in case.instructions:
            yield instruction, checker
            flipped = instruction.word
            for _ in range(random.choice([1, 1, 2, 8])):
                flipped ^= 1 << random.randrange(8 if random.random() < 0.2 else WORD_BITS)
            yield Instruction(flipped), checker
            code = random.choice(CORE_FAULTS)
            *before, faulting = faulting_instructions(code, checker, rng)
            for needed in before:
                yield needed, checker
                checker.check(needed)
            yield faulting, checker
            checker.check(instruction)


def copy(checker):
    """A copy of a checker, because ``check`` changes its state."""
    return LegalityChecker(
        checker.config,
        checker.host,
        checker.weights,
        dict(checker.registers),
        deque(checker.outstanding),
        checker.tile_in_array,
    )


@cocotb.test()
@cocotb.parametrize(form=["instruction_check", "instruction_check_ecp5"])
async def faults_and_ranges(dut, form):
    bench = await Bench.start(dut, form)
    inputs = {
        name: bench.port(name)
        for name in (
            *("load", "start", "new_word", "configuration", "windows"),
            *("has_tile", "has_queued_tile", "has_two_queued_tiles", "weight_queue_full"),
        )
    }
    inputs["may_load"] = bench.optional_port("may_load")
    names = ("word", "opcode_is", "done", "legal", "fault", "ranges", "host", "host_end")
    outputs = {name: bench.port(name) for name in names}

    def output(name):
        return int(outputs[name].value)

    seen = set()
    for instruction, checker in words(random_generator()):
        inputs["load"].value = 1
        await bench.steps(random.randrange(3))
        shift = random.choice([0, 0, 0, CONFIG.host_alignment])  # windows need not begin at 0
        checker = copy(checker)
        if random.random() < 0.1:
            most = 2 * CONFIG.weight_fifo_tiles // CONFIG.weight_queue_depth
            checker.outstanding = deque([random.randint(1, 1 + most)] * random.randint(1, CONFIG.weight_queue_depth))
        checker.host = Window(min(shift, checker.host.limit), checker.host.limit)
        inputs["new_word"].value = instruction.word
        inputs["configuration"].value = pack(configuration_layout(), configuration(checker))
        inputs["has_tile"].value = int(checker.tile_in_array)
        inputs["has_queued_tile"].value = int(bool(checker.outstanding))
        inputs["has_two_queued_tiles"].value = int(sum(checker.outstanding) >= 2)
        inputs["weight_queue_full"].value = int(len(checker.outstanding) == CONFIG.weight_queue_depth)
        inputs["may_load"].value = int(checker.may_load)
        inputs["windows"].value = pack(
            MemoryWindows(CONFIG),
            {
                "host_base": checker.host.base,
                "host_limit": checker.host.limit,
                "weight_base": checker.weights.base,
                "weight_limit": checker.weights.limit,
            },
        )
        inputs["load"].value = inputs["start"].value = 1
        await bench.step()
        inputs["load"].value = inputs["start"].value = 0
        inputs["new_word"].value = random.getrandbits(WORD_BITS)
        begin = bench.cycle
        await bench.step()
        while not output("done"):
            await bench.step()
            assert bench.cycle - begin < 100
        expected = checker.check(instruction)
        assert output("legal") == (expected is FaultCode.NONE)
        assert output("word") == instruction.word
        assert output("opcode_is") == sum(
            (instruction.word & 0xFF == format.opcode) << index for index, format in enumerate(CONFIG.features.formats)
        )
        assert FaultCode(output("fault")) is expected, (hex(instruction.word), expected)
        seen.add(expected)
        access = access_of(instruction, checker) if expected is FaultCode.NONE else None
        if access is not None:
            ranges = unpack(ranges_layout(CONFIG), output("ranges"))
            assert range(ranges.unified_buffer, ranges.unified_buffer_end) == access.unified_buffer
            if access.accumulators is not None or access.source is not None:
                assert range(ranges.source, ranges.source_end) == (access.accumulators or access.source)
            if access.operand is not None:
                assert range(ranges.operand, ranges.operand_end) == access.operand
            if access.host is not None:
                assert range(output("host"), output("host_end")) == access.host
    assert seen == {FaultCode.NONE, *CORE_FAULTS}
