"""Perfetto's trace processor reads what ``openmxu trace`` writes: ``make browser``."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

import openmxu
from openmxu.cli.application import run
from tests.profiling.perfetto import opened_trace

pytestmark = pytest.mark.browser

_INSTRUCTIONS = """
select process.name as process, slice.name as name, slice.ts + slice.dur as stop
from slice
join thread_track on slice.track_id = thread_track.id
join thread using (utid)
join process using (upid)
where slice.category = 'instruction'
order by extract_arg(slice.arg_set_id, 'args.index')
"""
_PROBLEMS = "select name, value from stats where severity = 'error' and value > 0"
NANOSECONDS = 1000  # of a cycle in a trace


@pytest.fixture(scope="module", params=["mnist", "vision_transformer"])
def written(request, tmp_path_factory) -> tuple[openmxu.Program, Path]:
    """A program, and the trace of its run on the simulated RTL beside the cycle model's, from the command line."""
    network = importlib.import_module(f"examples.{request.param}.network").NETWORK
    folder: Path = tmp_path_factory.mktemp(request.param)
    program = openmxu.compile(network.model(), openmxu.Config.for_size(16), batch=1, effort=0)
    program.save(folder / "program.mxu")
    np.save(folder / "input.npy", network.inputs(1))
    files = [str(folder / name) for name in ("program.mxu", "input.npy", "trace.json")]
    assert run(["trace", files[0], "--input", files[1], "--model", "-o", files[2]]) == 0
    return program, folder / "trace.json"


def test_slices_are_the_instructions(browser, written):
    program, path = written
    with opened_trace(browser, path.read_bytes()) as engine:
        rows, problems = engine.rows(_INSTRUCTIONS), engine.rows(_PROBLEMS)
    assert [(row.name, row.value) for row in problems] == []
    processes = {row.process for row in rows}
    assert len(processes) == 2
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event.get("cat") == "instruction"]
    for process in processes:
        found = [row for row in rows if row.process == process]
        assert len(found) == len(program.instructions)
        assert [row.name for row in found] == [instruction.name for instruction in program.instructions]
    assert {row.stop for row in rows} == {NANOSECONDS * (event["ts"] + event["dur"]) for event in events}
