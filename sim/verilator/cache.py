"""A cache of built libraries, indexed by all inputs of the build."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout

from openmxu.arch.config import Config
from openmxu.sim.verilator.build import LIBRARY_NAME, RUNTIME_NAME, build_library, build_runtime, build_system_library
from openmxu.sim.verilator.design import CORE, Design
from openmxu.sim.verilator.errors import BuildError, CacheError
from openmxu.sim.verilator.needs import check_machine, model_needs
from openmxu.sim.verilator.progress import ProgressHook, showing_progress
from openmxu.sim.verilator.toolchain import Toolchain, check_fst_headers, find_toolchain

__all__ = ["CACHE_VARIABLE", "cache_directory", "library_path", "system_library_path"]

_logger = logging.getLogger(__name__)

CACHE_VARIABLE = "OPENMXU_CACHE"
"""Environment variable that names another folder for the cache."""


def cache_directory() -> Path:
    """The folder of built libraries: ``$OPENMXU_CACHE``, or else openmxu's folder in the user's cache."""
    return Path(os.environ.get(CACHE_VARIABLE) or platformdirs.user_cache_dir("openmxu"))


def library_path(
    config: Config, *, design: Design = CORE, trace: str | None = None, progress: ProgressHook | None = None
) -> Path:
    """The shared library of a configuration, built if it is not in the cache.

    Parameters
    ----------
    config
        Sizes of the core.
    design
        What to compile.
    trace
        ``"vcd"`` or ``"fst"`` for a model that can write waveforms, ``"coverage"`` for one that counts executed lines;
        these are slower, and separate entries.
    progress
        Called during the build; ``None`` shows a bar if standard error is a terminal.

    Raises
    ------
    MissingToolError
        A tool that the build needs is not installed.
    BuildError
        The build failed.
    CacheError
        The folder of the cache cannot be created or written.
    MachineTooSmallError
        The build would take more memory than the machine has.
    """
    tools = find_toolchain()
    if trace == "fst":
        check_fst_headers(tools)

    def build(runtime: Callable[[], Path], directory: Path, report: ProgressHook) -> Path:
        return build_library(design, config, trace, tools, runtime, directory, report)

    name, what = _entry_name(config, design, trace, tools), f"the S = {config.size} simulation model"

    def check() -> None:
        check_machine("the simulation model", config, model_needs(config, trace))

    return _library(name, what, trace, tools, build, progress, check)


def system_library_path(verilog: str, harness: Path, *, progress: ProgressHook | None = None) -> Path:
    """The shared library of a system whose top module is ``openmxu_core``, built if it is not in the cache.

    Parameters
    ----------
    verilog
        All modules of the system.
    harness
        The C++ file that drives the model ``Vopenmxu_core``, and has the library's functions.
    progress
        As of :func:`library_path`.

    Raises
    ------
    MissingToolError, BuildError, CacheError
        As :func:`library_path`.
    """
    tools = find_toolchain()

    def build(runtime: Callable[[], Path], directory: Path, report: ProgressHook) -> Path:
        return build_system_library(verilog, harness, tools, runtime, directory, report)

    name = f"system-{_digest([tools.versions, verilog, harness.read_text()])}-plain"
    return _library(name, "the simulation model of the system", None, tools, build, progress)


def _library(
    name: str,
    what: str,
    trace: str | None,
    tools: Toolchain,
    build: Callable[[Callable[[], Path], Path, ProgressHook], Path],
    progress: ProgressHook | None,
    check: Callable[[], None] | None = None,
) -> Path:
    """The library in an entry of the cache; ``build`` makes it from Verilator's runtime library in an empty folder.

    ``check`` is called before a build, and raises an error if the machine is not fit for it.
    """
    root = cache_directory()
    entry = root / name
    library = entry / LIBRARY_NAME
    if _is_there(library):
        _logger.debug("simulation model in the cache: %s", entry)
        return library
    if check is not None:
        check()
    _prepare(root)
    _logger.info("simulation model not in the cache: %s", entry)
    start = time.perf_counter()
    with showing_progress(f"Building {what}", progress) as report:

        def build_it(directory: Path) -> Path:
            def runtime() -> Path:
                return _runtime(root, trace, tools, report)

            return build(runtime, directory, report)

        _build_once(library, build_it, report)
        report("done", 1.0)
    _logger.info("simulation model ready after %.1f s", time.perf_counter() - start)
    return library


def _is_there(library: Path) -> bool:
    """Whether a file of the cache exists; not, if the cache's folder is none, or is closed to this user."""
    try:
        return library.exists()
    except OSError:
        return False


def _prepare(root: Path) -> None:
    """Make the folder of the cache, and check that it can be written, before a build that takes long.

    Raises
    ------
    CacheError
        It cannot.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            pass
    except OSError as error:
        raise CacheError(root, (error.strerror or str(error)).lower(), CACHE_VARIABLE) from None


def _runtime(root: Path, trace: str | None, tools: Toolchain, report: ProgressHook) -> Path:
    """Verilator's runtime library for models with or without waveforms."""
    archive = root / f"runtime-{_digest([tools.versions])}-{trace or 'plain'}" / RUNTIME_NAME
    if not archive.exists():
        _build_once(archive, lambda directory: build_runtime(trace, tools, directory, report), report)
    return archive


def _build_once(file: Path, build: Callable[[Path], Path], report: ProgressHook) -> None:
    """Let ``build`` make ``file``, whose folder is an entry of the cache, unless another process has built it
    meanwhile."""
    lock = FileLock(file.parent.with_suffix(".lock"))
    try:
        lock.acquire(blocking=False)
    except Timeout:
        report("waiting for another process that builds it", 0.0)
        lock.acquire()
    try:
        if not file.exists():
            _build_entry(file.parent, build)
    finally:
        lock.release()


def _build_entry(entry: Path, build: Callable[[Path], Path]) -> None:
    # Built in a temporary folder because make does not support spaces in paths; and an entry appears with one rename,
    # so that no process loads an incomplete library.
    with tempfile.TemporaryDirectory(prefix="openmxu-") as directory:
        try:
            library = build(Path(directory))
        except BuildError as error:
            log = Path(shutil.copy(error.log, entry.with_suffix(".log")))
            raise BuildError(error.step, error.reason, log) from None
        partial = entry.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        for path in (library, library.with_name("build.log")):
            shutil.copy(path, partial)
        partial.rename(entry)


def _entry_name(config: Config, design: Design, trace: str | None, tools: Toolchain) -> str:
    # The shells have the same source files as the core; their harness files distinguish them.
    return "-".join([config.fingerprint, _digest([tools.versions, *design.harness], design.sources), trace or "plain"])


def _digest(texts: Iterable[str], sources: Iterable[Path] = ()) -> str:
    """A name for what is built from these texts, these files and folders, and the files of this package."""
    digest = hashlib.sha256("\0".join(texts).encode())
    for path in _files((*sources, Path(__file__).parent)):
        digest.update(f"\0{path.name}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _files(sources: Iterable[Path]) -> Iterable[Path]:
    for source in sources:
        if source.is_dir():
            yield from sorted(path for path in source.rglob("*") if path.suffix in (".py", ".h", ".cpp"))
        else:
            yield source
