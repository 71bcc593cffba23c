"""Settings for all tests, and the selection of tests that are run.

``make check`` runs tests without built hardware, ``make test`` all except slow ones, ``make test-all`` those as well,
and ``make browser`` those that need Chromium. Slow tests have the mark ``slow`` in their files; the files whose tests
get the mark ``build`` are listed here.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import openmxu.sim.verilator.cache
import tb.build
from tests import short_searches

# No deadlines: they depend on the machine, and a first call may compile or import for seconds.
settings.register_profile("openmxu", deadline=None, print_blob=True)
settings.load_profile("openmxu")

ROOT = Path(__file__).parent

BUILDS = (
    *("tb", "fpga", "rtl", "verilog"),
    "cli/test_boards.py",
    *("cli/test_bench.py", "cli/test_demo.py", "cli/test_models.py", "cli/test_serial.py", "cli/test_verilog.py"),
    "cli/test_waves.py",
    *("compiler/test_exactness.py", "compiler/test_network_campaign.py", "compiler/test_program.py"),
    *("compiler/test_int16_rtl.py", "compiler/recurrent/test_rtl.py"),
    *("compiler/emit/test_schedule.py", "driver/test_serial.py", "embedded/test_verilated.py"),
    "docs/test_board_commands.py",
    *("docs/test_notebooks.py", "docs/test_site.py", "docs/test_tutorials.py"),
    *("examples/test_mnist.py", "examples/test_networks.py", "examples/test_recurrent_networks.py"),
    *("lockstep/test_directed.py", "lockstep/test_faults.py", "lockstep/test_line_coverage.py"),
    *("lockstep/test_lockstep.py", "lockstep/test_random_programs.py", "lockstep/test_scrub.py"),
    *("sim/test_axi.py", "sim/test_build_cache.py", "sim/test_counters.py", "sim/test_cycle_counts.py"),
    *(
        "sim/test_cycle_model.py",
        "sim/test_ends.py",
        "sim/test_lite_board.py",
        "sim/test_instrumented.py",
        "sim/test_serial.py",
    ),
    *("sim/test_verilated.py", "profiling/test_recording.py", "profiling/test_trace.py"),
    *("profiling/test_waves.py", "profiling/test_browser.py", "profiling/test_recorded_profile.py"),
    *("test_packaging.py", "test_reporting.py"),
)
"""Folders and files whose tests build hardware or run its tools: Verilator, cocotb, Yosys, nextpnr, the solver."""


def _builds(path: Path) -> bool:
    return any(path.is_relative_to(ROOT / name) for name in BUILDS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _builds(item.path):
            item.add_marker("build")
    # Start with the longest tests, so that the workers finish at about the same time.
    items.sort(key=lambda item: not _builds(item.path))


_GARBAGE = 1_000_000
"""Number of objects, most of them in use, after which garbage is collected."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Collect garbage between tests only: during a test it would take a third of the time of an elaboration."""
    gc.disable()
    try:
        return (yield)
    finally:
        if gc.get_count()[0] > _GARBAGE:
            gc.collect()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let the compiler search briefly, except in tests that are marked ``whole_search``: before the first fixture,
    because those of a whole file compile networks as well."""
    if item.get_closest_marker("whole_search") is None:
        short_searches.begin()
    else:
        short_searches.end()


@pytest.fixture(autouse=True)
def _nothing_is_built_unmarked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a test without the mark ``build`` that builds hardware, since that would make ``make check`` slow."""

    def refuse(*arguments: object, **options: object) -> None:
        pytest.fail(f"{request.node.path.name} builds hardware: name it in BUILDS of {Path(__file__).name}")

    if "not build" in request.config.getoption("markexpr"):
        monkeypatch.setattr(openmxu.sim.verilator.cache, "build_library", refuse)
        monkeypatch.setattr(tb.build, "_compile", refuse)
