"""From a design to a shared library: Verilog, C++, object files, one ``.so``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from openmxu.arch.config import Config
from openmxu.sim.verilator.design import Design
from openmxu.sim.verilator.errors import BuildError
from openmxu.sim.verilator.initial_values import fold_initial_values
from openmxu.sim.verilator.progress import ProgressHook
from openmxu.sim.verilator.toolchain import Toolchain
from openmxu.sim.verilator.unnamed_signals import hide_unnamed_signals

__all__ = [
    "COVERAGE",
    "LIBRARY_NAME",
    "RUNTIME_NAME",
    "TRACES",
    "build_library",
    "build_runtime",
    "build_system_library",
]

LIBRARY_NAME = "libopenmxu.so"

RUNTIME_NAME = "libverilated.a"
"""Verilator's runtime library, which every model is linked with."""

TRACES = ("vcd", "fst")
"""Waveform formats."""

COVERAGE = "coverage"
"""In place of a waveform format: the file counts which lines were executed and which bits toggled."""

_VERILATOR_OPTIONS = (
    *("--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-assert", "--no-timing", "-Wno-fatal"),
    # Loops of the array stay loops.
    *("--unroll-count", "1"),
    # Files and functions of bounded size, because compile time grows faster than linearly with a function's size.
    *("--output-split", "10000", "--output-split-cfuncs", "2000"),
)
_TRACE_OPTIONS = {
    None: (),
    "vcd": ("--trace-vcd", "-CFLAGS", "-DOPENMXU_TRACE_VCD"),
    "fst": ("--trace-fst", "-CFLAGS", "-DOPENMXU_TRACE_FST"),
    COVERAGE: ("--coverage-line", "--coverage-toggle", "-CFLAGS", "-DOPENMXU_COVERAGE"),
}
_TRACE_LIBRARIES = {None: (), "vcd": (), "fst": ("-llz4", "-lz"), COVERAGE: ()}
_HARNESSES = Path(__file__).with_name("harness")

_UNIT_BYTES = 1_500_000
"""Bytes of C++ per compilation unit. The compiler spends a second on headers for each unit, and several units compile
in parallel."""

# Hidden symbols, and no unique ones, keep the models of several configurations apart when one process loads them.
_CXX_FLAGS = "-std=c++20 -fPIC -fvisibility=hidden -fno-gnu-unique -w"

_OPTIMIZATION = "-O2 -march=native -ftree-vectorize -fvect-cost-model=dynamic"
"""For this processor, whose options are part of the toolchain's versions: caches may be shared between machines. The
loops of the array are vectorized; more than that takes longer to compile than it saves."""

_QUICK = "-O1"
"""Of models with a waveform: writing it takes most of their time, and they run few cycles."""

_MAKEFILE = """\
include Vopenmxu_core.mk
fast_%.o: OPT_FAST = {optimization}
slow_%.o: OPT_FAST = -O0
"""

_FIRST_ERROR = re.compile(r"%Error|\berror:|\*\*\*|Traceback|undefined reference")


def build_library(
    design: Design,
    config: Config,
    trace: str | None,
    tools: Toolchain,
    runtime: Callable[[], Path],
    directory: Path,
    progress: ProgressHook,
) -> Path:
    """Build in ``directory``, which must be empty and without spaces in its path, and return the library's path.

    ``runtime`` returns the library of :func:`build_runtime` for the same trace and tools.

    Raises
    ------
    BuildError
        A tool failed; ``directory / "build.log"`` has its messages.
    """
    progress("generating Verilog", 0.0)
    _write_sources(design, config, trace, directory)
    build = _Build(directory, tools, _QUICK if trace in TRACES else _OPTIMIZATION)
    return build.library(trace, ["memories.vlt", "core.v", design.harness[-1]], runtime, progress)


def build_system_library(
    verilog: str,
    harness: Path,
    tools: Toolchain,
    runtime: Callable[[], Path],
    directory: Path,
    progress: ProgressHook,
) -> Path:
    """Build a system whose top module is ``openmxu_core``, as :func:`build_library` does the core.

    Raises
    ------
    BuildError
        A tool failed; ``directory / "build.log"`` has its messages.
    """
    (directory / "core.v").write_text(fold_initial_values(verilog))
    shutil.copy(harness, directory)
    return _Build(directory, tools, _OPTIMIZATION).library(None, ["core.v", harness.name], runtime, progress)


def build_runtime(trace: str | None, tools: Toolchain, directory: Path, progress: ProgressHook) -> Path:
    """Build Verilator's runtime library in the empty ``directory``, and return its path.

    It takes longer to compile than a small model does, and depends only on the waveform format and the tools.

    Raises
    ------
    BuildError
        A tool failed; ``directory / "build.log"`` has its messages.
    """
    progress("compiling Verilator's library", 0.0)
    (directory / "empty.v").write_text("module openmxu_core(input clk); endmodule\n")
    build = _Build(directory, tools, _OPTIMIZATION)
    build.verilate(trace, "empty.v")
    build.make([RUNTIME_NAME])
    return directory / RUNTIME_NAME


def _write_sources(design: Design, config: Config, trace: str | None, directory: Path) -> None:
    # Imported here because a build that is in the cache needs no Amaranth.
    from openmxu.rtl.verilog.convert import to_verilog
    from openmxu.sim.verilator.layout import TOP, layout_header, memories_configuration

    memories, probes = design.memories(config), design.recorded(config)
    if design.netlist is None:
        # A waveform, and what coverage counts, should have the signals of each element.
        verilog = to_verilog(design.make(config), TOP, loops=trace is None)
    else:
        verilog = design.netlist.read_text()
    if trace in TRACES:
        # They are a third of the signals, and of the time that it takes to compile the model.
        verilog = hide_unnamed_signals(verilog)
    (directory / "core.v").write_text(fold_initial_values(verilog))
    (directory / "memories.vlt").write_text(memories_configuration(memories, probes))
    (directory / "layout.h").write_text(layout_header(config, memories, design.selector, probes))
    for name in design.harness:
        shutil.copy(_HARNESSES / name, directory)


class _Build:
    def __init__(self, directory: Path, tools: Toolchain, optimization: str) -> None:
        self.directory = directory
        self.tools = tools
        self.optimization = optimization
        self.log = directory / "build.log"
        # A build started by make must not take part in that make's job control.
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        self.environment |= {"VERILATOR_ROOT": str(tools.verilator_root), "LC_ALL": "C"}

    def library(
        self, trace: str | None, sources: Sequence[str], runtime: Callable[[], Path], progress: ProgressHook
    ) -> Path:
        progress("verilating", 0.1)
        self.verilate(trace, *sources)
        self.compile(progress)
        progress("linking", 0.98)
        return self.link(trace, runtime())

    def verilate(self, trace: str | None, *sources: str) -> None:
        top = ("--top-module", "openmxu_core", "--prefix", "Vopenmxu_core", "--Mdir", ".")
        options = (*_VERILATOR_OPTIONS, *_TRACE_OPTIONS[trace], *top)
        self._run("Verilator", [self.tools.verilator, *options, *sources])

    def compile(self, progress: ProgressHook) -> None:
        sources = sorted(self.directory.glob("*.cpp"))
        slow = [path for path in sources if path.stem.endswith("__Slow")]
        units = [*self._write_units("fast", set(sources) - set(slow)), *self._write_units("slow", slow)]
        total, done = len(units), 0

        def count(line: str) -> None:
            nonlocal done
            done += " -c " in line
            progress(f"compiling {min(done, total)}/{total}", 0.2 + 0.78 * min(1.0, done / total))

        self.make([f"{unit}.o" for unit in units], count)

    def _write_units(self, kind: str, sources: Iterable[Path]) -> list[str]:
        """Write files that include ``sources``; returns their names without suffix."""
        units: list[list[Path]] = []
        room = 0
        for source in sorted(sources):
            size = source.stat().st_size
            if size > room:
                units.append([])
                room = _UNIT_BYTES
            units[-1].append(source)
            room -= size
        names = [f"{kind}_{number}" for number in range(len(units))]
        for name, members in zip(names, units, strict=True):
            text = "".join(f'#include "{path.name}"\n' for path in members)
            (self.directory / f"{name}.cpp").write_text(text)
        return names

    def make(self, targets: Sequence[str], on_line: Callable[[str], None] | None = None) -> None:
        # The makefile's values are those of the machine on which the package was built.
        variables = {
            "CXX": self.tools.gxx,
            "LINK": self.tools.gxx,
            "AR": "ar",
            "PYTHON3": sys.executable,
            "CFG_CXXFLAGS_STD": _CXX_FLAGS,
            "OPT_GLOBAL": "-O2",
            "VM_PARALLEL_BUILDS": "1",
        }
        (self.directory / "units.mk").write_text(_MAKEFILE.format(optimization=self.optimization))
        command = [self.tools.make, "-f", "units.mk", f"-j{os.cpu_count() or 1}", *targets]
        self._run("compiling the model", command + [f"{name}={value}" for name, value in variables.items()], on_line)

    def link(self, trace: str | None, runtime: Path) -> Path:
        library = self.directory / LIBRARY_NAME
        objects = sorted(path.name for path in self.directory.glob("*.o"))
        command = [self.tools.gxx, "-shared", "-Wl,-Bsymbolic", "-Wl,--no-undefined", "-o", library.name, *objects]
        self._run("linking the model", [*command, str(runtime), "-pthread", *_TRACE_LIBRARIES[trace]])
        return library

    def _run(self, step: str, command: list[str], on_line: Callable[[str], None] | None = None) -> None:
        with self.log.open("a") as log:
            log.write(f"$ {' '.join(command)}\n")
            process = subprocess.Popen(
                command,
                cwd=self.directory,
                env=self.environment,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            lines = []
            assert process.stdout is not None, "it is a pipe"
            with process:
                for line in process.stdout:
                    log.write(line)
                    lines.append(line.strip())
                    if on_line is not None:
                        on_line(line)
        if process.returncode:
            raise BuildError(step, _first_error(lines, process.returncode), self.log)


def _first_error(lines: list[str], status: int) -> str:
    errors = [line for line in lines if _FIRST_ERROR.search(line)]
    return (errors or lines[-1:] or [f"exit status {status}"])[0]
