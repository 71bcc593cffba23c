"""The outputs that tell a watchdog whether the core works on something, and whether it gets on with it."""

from __future__ import annotations

from collections.abc import Mapping

from openmxu.arch.config import Config
from openmxu.arch.events import Counter
from openmxu.arch.isa import Unit, format_named
from openmxu.sim.verilated import VerilatedDevice
from tb.directed.instructions import synchronize
from tb.directed.timed_programs import host_memory, setup, weight_memory
from tb.lockstep.case import HALT

__all__ = ["check_progress"]


def check_progress(config: Config, options: Mapping[str, object]) -> None:
    """``busy`` is set while a unit has work, and ``finished`` once for each instruction other than Read_Weights.

    Raises
    ------
    AssertionError
        The cycles in which an output was set differ from the counters of a program whose instructions do not overlap.
    """
    one_of_each = [
        format_named("read_weights")(tiles=1),
        format_named("matrixmultiply")(rows=2, next_tile=1),
        *(format_named(name)(rows=2) for name in ("read_host_memory", "activate", "write_host_memory")),
        format_named("nop")(),
    ]
    program = [*(each for one in one_of_each for each in (one, synchronize())), HALT]
    with VerilatedDevice(config, **options) as device:
        for instructions in (setup(), program):
            device.clear_counters()
            before = device._model.status()
            device.execute(instructions, host_memory(config), weight_memory(config))
            after = device._model.status()
        counters = device.counters
    busy = sum(counters[Counter[f"{unit.name}_BUSY"]] for unit in Unit)
    retired = sum(count for counter, count in counters.items() if counter.name.startswith("RETIRED"))
    assert after.busy_cycles - before.busy_cycles == busy
    assert after.finished_cycles - before.finished_cycles == retired - counters[Counter.RETIRED_READ_WEIGHTS]
