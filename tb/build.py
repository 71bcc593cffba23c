"""Builds of the racks with Verilator and cocotb; each is made once and shared by all test processes."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from cocotb_tools.runner import Verilator
from filelock import FileLock

from openmxu.arch.config import Config
from openmxu.sim.verilator.toolchain import find_toolchain

__all__ = ["TOP", "built_rack", "tool_environment"]

TOP = "rack"
"""Name of the top module."""

REPOSITORY = Path(__file__).parent.parent

_CACHE = REPOSITORY / "build" / "tb"
_SOURCES = ("rtl", "openmxu/arch", "tb/cells.py", "tb/rack.py", "tb/formal/axi")

_DESIGN = "rack.v"
_PORTS = "ports.vlt"
"""Makes the top's ports public. With cocotb's default, all signals, a build compiles and runs many times slower."""

_VERILATOR_OPTIONS = (
    *("--no-public-flat-rw", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-assert", "--no-timing"),
    "-Wno-fatal",
    # Functions of bounded size, because compile time grows faster than linearly with a function's size; and few files,
    # because each takes seconds for the headers. What runs once is in files of its own, and is not optimized.
    *("--output-split", "200000", "--output-split-cfuncs", "2000"),
)
# The tests run for seconds, so fast compilation matters more than fast code. The remaining variables default to values
# of the machine on which the Verilator package was built, and have to be replaced.
_MAKE_VARIABLES = {
    "CXX": "g++",
    "LINK": "g++",
    "AR": "ar",
    "PYTHON3": sys.executable,
    "CFG_CXXFLAGS_PCH_I": "-include",
    "CFG_LDLIBS_THREADS": "-pthread",
    "OPT_FAST": "-O1",
    "OPT_SLOW": "-O0",
    "OPT_GLOBAL": "-O1",
    "VM_PARALLEL_BUILDS": "1",
}


def built_rack(kind: str, config: Config) -> Path:
    """The folder of a built rack. Builds it if necessary, or waits for another process that is building it."""
    runtime = _built(f"runtime-{_fingerprint(())}", _write_empty)

    def write(directory: Path) -> None:
        # Imported here because using an existing build needs no Amaranth.
        from openmxu.rtl.verilog.convert import to_verilog
        from tb.rack import Rack

        (directory / _DESIGN).write_text(to_verilog(Rack(kind, config), TOP))

    return _built(f"{kind}-S{config.size}-{config.fingerprint}-{_fingerprint(_SOURCES)}", write, runtime)


@contextlib.contextmanager
def tool_environment(**variables: str) -> Iterator[None]:
    """Environment in which cocotb's runner finds Verilator; ``variables`` are passed to make."""
    tools = find_toolchain()
    before = dict(os.environ)
    # A build started by make must not take part in the job control of that make.
    for name in [name for name in os.environ if name.startswith("MAKE")]:
        del os.environ[name]
    os.environ["PATH"] = os.pathsep.join([str(tools.verilator_root / "bin"), os.environ["PATH"]])
    os.environ["VERILATOR_ROOT"] = str(tools.verilator_root)
    os.environ["MAKEFLAGS"] = " ".join(f"{name}={value}" for name, value in variables.items())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _write_empty(directory: Path) -> None:
    (directory / _DESIGN).write_text(f"module {TOP}(input clk); endmodule\n")


def _built(name: str, write: Callable[[Path], None], runtime: Path | None = None) -> Path:
    """The folder in the cache with the model of the design that ``write`` writes.

    Verilator's own library takes longer to compile than the units, so it is taken from the build in ``runtime``.
    """
    directory = _CACHE / name
    directory.parent.mkdir(parents=True, exist_ok=True)
    complete = directory / "complete"
    with FileLock(directory.with_suffix(".lock")):
        if not complete.exists():
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir()
            write(directory)
            _compile(directory, runtime)
            complete.touch()
    return directory


def _compile(directory: Path, runtime: Path | None) -> None:
    (directory / _PORTS).write_text(f'`verilator_config\npublic_flat_rw -module "{TOP}" -var "*"\n')
    options, variables = list(_VERILATOR_OPTIONS), dict(_MAKE_VARIABLES)
    if runtime is not None:
        options += ["-LDFLAGS", " ".join(str(path) for path in sorted(runtime.glob("verilated*.o")))]
        variables["VM_GLOBAL_FAST"] = ""
    log = directory / "build.log"
    with tool_environment(**variables):
        try:
            Verilator().build(
                sources=[directory / _PORTS, directory / _DESIGN],
                hdl_toplevel=TOP,
                build_dir=directory,
                build_args=options,
                timescale=("1ns", "1ps"),
                log_file=log,
            )
        except Exception as error:
            error.add_note(f"the end of {log}:\n{log.read_text()[-3000:] if log.exists() else ''}")
            raise


def _fingerprint(sources: Iterable[str]) -> str:
    """A hash of everything but the configuration that a build depends on: ``sources``, this file, and the tools."""
    versions = (importlib.metadata.version(name) for name in ("verilator", "cocotb", "amaranth"))
    digest = hashlib.sha256("\0".join([*versions, sys.version]).encode())
    for source in (Path(__file__), *(REPOSITORY / name for name in sources)):
        for path in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
            digest.update(f"\0{path.name}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
