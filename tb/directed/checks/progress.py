"""What tells a watchdog or a driver whether the core works on something, and whether it gets on with it."""

from __future__ import annotations

from collections.abc import Mapping

from openmxu.arch.config import Config
from openmxu.arch.events import STATUS_UNITS_OFFSET, Counter, Management
from openmxu.arch.isa import Instruction, Unit, encode_program, format_named
from openmxu.sim.verilated import VerilatedDevice
from openmxu.sim.verilator.library import Result
from tb.directed.instructions import synchronize
from tb.directed.timed_programs import host_memory, setup, weight_memory
from tb.lockstep.case import HALT

__all__ = ["check_progress"]

_ROWS = 8
_PATIENCE = 10_000


def check_progress(config: Config, options: Mapping[str, object]) -> None:
    """Check the outputs ``busy`` and ``finished``, and the units that the status register shows as busy.

    Raises
    ------
    AssertionError
        ``busy`` is not set in the cycles in which a unit has work, or ``finished`` not once for each instruction other
        than Read_Weights; or the status register shows other units than those of a program.
    """
    with VerilatedDevice(config, **options) as device:
        device.execute(setup(), host_memory(config), weight_memory(config))
        _check_outputs(device)
        _check_status(device)


def _check_outputs(device: VerilatedDevice) -> None:
    """Compare them with the counters of a program whose instructions do not overlap."""
    one_of_each = [
        format_named("read_weights")(tiles=1),
        format_named("matrixmultiply")(rows=2, next_tile=1),
        *(format_named(name)(rows=2) for name in ("read_host_memory", "activate", "write_host_memory")),
        format_named("nop")(),
    ]
    program = [*(each for one in one_of_each for each in (one, synchronize())), HALT]
    device.clear_counters()
    before = device._model.status()
    device.execute(program, host_memory(device.config), weight_memory(device.config))
    after = device._model.status()
    counters = device.counters
    busy = sum(counters[Counter[f"{unit.name}_BUSY"]] for unit in Unit)
    retired = sum(count for counter, count in counters.items() if counter.name.startswith("RETIRED"))
    assert after.busy_cycles - before.busy_cycles == busy
    assert after.finished_cycles - before.finished_cycles == retired - counters[Counter.RETIRED_READ_WEIGHTS]


def _check_status(device: VerilatedDevice) -> None:
    tile = [format_named("read_weights")(tiles=1), format_named("matrixmultiply")(rows=_ROWS, next_tile=1)]
    for instructions, units in (
        ([format_named("read_host_memory")(rows=_ROWS)], {Unit.HOST_READ}),
        ([format_named("write_host_memory")(rows=_ROWS)], {Unit.HOST_WRITE}),
        ([format_named("activate")(rows=_ROWS)], {Unit.ACTIVATION}),
        (tile, {Unit.WEIGHT, Unit.MATRIX}),
    ):
        assert _units_seen(device, [*instructions, HALT]) == units


def _units_seen(device: VerilatedDevice, program: list[Instruction]) -> set[Unit]:
    """The units that the status register shows as busy while a program runs."""
    model, words = device._model, encode_program(program)
    model.attach(host_memory(device.config), weight_memory(device.config))
    model.feed(words, 1)
    seen = 0
    while model.run(1, _PATIENCE) is not Result.ENDED:
        _, status = model.read_register(Management.STATUS, _PATIENCE)
        seen |= status >> STATUS_UNITS_OFFSET
    return {unit for unit in Unit if seen >> unit & 1}
