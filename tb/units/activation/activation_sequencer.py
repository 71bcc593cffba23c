"""Activation sequencer: passes become beats as soon as all inputs are available, and never before."""

import cocotb

from openmxu.rtl.activation.activation_sequencer import beat_layout, sequence_layout
from openmxu.rtl.activation.element_fetcher import pass_layout
from openmxu.rtl.activation.pooler import PoolOperation
from openmxu.rtl.dispatch.commands import Operand
from tb.bench import CONFIG, STALLS, Agent, Bench, random_generator
from tb.models.payloads import pack, unpack

WALKS = 50


class Beats(Agent):
    """Records the beats."""

    def __init__(self, bench):
        self.bench = bench
        self.port = bench.port("beat")
        self.seen, self.cycles = [], []
        bench.add(self)

    def sample(self):
        beat = unpack(beat_layout(CONFIG), int(self.port.value))
        if beat.active:
            self.seen.append(beat)
            self.cycles.append(self.bench.cycle)


def random_format(rng):
    return {"zero_point": int(rng.integers(-(1 << 16), 1 << 16)), "is_signed": int(rng.integers(2)), "wide": 0}


def random_walk(rng):
    """Sequence and passes of a random walk, as dictionaries."""
    sequence = {
        "parameters": int(rng.integers(0, CONFIG.parameter_sets)),
        "maximum": int(rng.integers(2)),
        "is_int32": int(rng.integers(2)),
        "source_format": random_format(rng),
        "operand_format": random_format(rng),
    }
    operand = Operand(int(rng.integers(len(Operand))))
    passes = []
    for _ in range(int(rng.integers(1, 5))):
        positions = int(rng.integers(1, 4))
        repeat = int(rng.integers(0, 4))
        for position in range(positions):
            source = int(rng.integers(0, 3))
            passes.append(
                {
                    "row": int(rng.integers(0, CONFIG.accumulator_rows)),
                    "from_accumulators": int(source == 1),
                    "from_elements": int(source == 2),
                    "operand": Operand.NONE.value,
                    "begins": int(position == 0),
                    "completes": int(position == positions - 1 and operand is Operand.NONE),
                    "turns": int(rng.integers(2)),
                    "repeat": repeat,
                }
            )
        if operand is not Operand.NONE:
            passes.append({"from_elements": 1, "operand": operand.value, "begins": 1, "completes": 1, "repeat": repeat})
    passes[-1]["last"] = 1
    return sequence, passes


def operation_of(item, sequence):
    if item["operand"] == Operand.MULTIPLY.value:
        return PoolOperation.HOLD
    if item["begins"]:
        return PoolOperation.FIRST
    return PoolOperation.MAXIMUM if sequence["maximum"] else PoolOperation.SUM


def expected_beats(sequence, passes):
    groups = CONFIG.column_groups
    for item in passes:
        for group in range(groups):
            yield {
                "group": group,
                "from_accumulators": item.get("from_accumulators", 0),
                "from_elements": item["from_elements"],
                "operand": item["operand"],
                "format": sequence["source_format" if item["operand"] == Operand.NONE.value else "operand_format"],
                "repeat": item["repeat"],
                "operation": operation_of(item, sequence).value,
                "maximum": sequence["maximum"],
                "is_int32": sequence["is_int32"],
                "parameters": sequence["parameters"] * groups + group,
                "completes": item["completes"],
                "ends_pass": int(group == groups - 1),
                "ends_walk": int(group == groups - 1 and item.get("last", 0)),
                "turns": item.get("turns", 0),
            }


@cocotb.test()
@STALLS
async def passes_become_beats(dut, idle, backpressure):
    bench = await Bench.start(dut, "activation_sequencer")
    rng = random_generator()
    sequences, passes = bench.source("sequences", idle), bench.source("passes", idle)
    beats = Beats(bench)
    reads = bench.sink("read", backpressure)
    expected, rows, starts = [], [], []
    for _ in range(WALKS):
        sequence, items = random_walk(rng)
        sequences.send(pack(sequence_layout(CONFIG), sequence))
        passes.send(*(pack(pass_layout(CONFIG), item) for item in items))
        for index, item in enumerate(items):
            if item.get("from_accumulators"):
                rows.append(item["row"])
                starts.append(len(expected) + index * CONFIG.column_groups)
        expected += expected_beats(sequence, items)
    await bench.until(lambda: len(beats.seen) == len(expected), 50_000)
    await bench.steps(10)
    assert len(beats.seen) == len(expected)
    for beat, want in zip(beats.seen, expected, strict=True):
        got = {name: getattr(beat, name) for name in want}
        assert got | {"format": vars(beat.format)} == want
    # A row is read in the cycle of its first beat, and the beats of a pass are consecutive.
    assert reads.received == rows
    assert reads.times == [beats.cycles[start] for start in starts]
    for place in range(0, len(expected), CONFIG.column_groups):
        first = beats.cycles[place]
        assert beats.cycles[place : place + CONFIG.column_groups] == [
            first + group for group in range(CONFIG.column_groups)
        ]
    if idle == backpressure == 0:
        assert beats.cycles[-1] - beats.cycles[0] == len(expected) - 1
