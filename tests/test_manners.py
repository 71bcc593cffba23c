"""What an application may expect of the library: one base of exceptions, logging that it can control, one thread for
each device, inputs that are refused rather than computed with, progress, and a version."""

from __future__ import annotations

import importlib.metadata
import logging
import pkgutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openmxu
from openmxu.arch.isa import format_named
from openmxu.compiler import gemm, gemm_input
from openmxu.models import DIGITS_MODEL, digits_test_split
from openmxu.sim.interpreter import Interpreter
from openmxu.sim.verilator import errors
from openmxu.sim.verilator.cache import CACHE_VARIABLE, library_path

CONFIG = openmxu.Config(size=4)
_HALT = format_named("Halt")()


def subclasses(base: type) -> set[type]:
    """All classes that are derived from this one, through others or not."""
    direct = set(base.__subclasses__())
    return direct.union(*map(subclasses, direct))


def test_every_exception_has_the_same_base():
    for module in pkgutil.walk_packages(openmxu.__path__, "openmxu."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    ours = {kind for kind in subclasses(BaseException) if kind.__module__.partition(".")[0] == "openmxu"}
    assert len(ours) > 20
    assert {kind for kind in ours if not issubclass(kind, openmxu.OpenmxuError)} == set()


def test_python_exceptions_that_callers_may_catch_already():
    for kind in (openmxu.CompileError, openmxu.InputError, openmxu.ProgramFileError, openmxu.UnknownDeviceError):
        assert issubclass(kind, ValueError)


def test_version():
    assert openmxu.__version__ == importlib.metadata.version("openmxu")


def test_version_of_a_clone_that_was_not_installed():
    code = """if True:
        import importlib.metadata, sys
        def missing(name):
            raise importlib.metadata.PackageNotFoundError(name)
        importlib.metadata.version = missing
        import openmxu
        print(openmxu.__version__)"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "0+unknown\n"


class Waits(Interpreter):
    """Executes only when it may."""

    def __init__(self) -> None:
        super().__init__(CONFIG)
        self.begun, self.may_go_on = threading.Event(), threading.Event()

    def _step(self, *arguments: Any) -> Any:
        self.begun.set()
        assert self.may_go_on.wait(60)
        return super()._step(*arguments)


def test_a_device_serves_one_thread():
    program, values = gemm(3, 4, 5, CONFIG), gemm_input(3, 4)
    with Interpreter(CONFIG) as device:
        expected = program.run(device, values)
    device = Waits()
    device.load(program)
    results: list[dict[str, np.ndarray]] = []
    thread = threading.Thread(target=lambda: results.append(device.run(values)))
    thread.start()
    assert device.begun.wait(60)
    nothing = np.zeros(0, np.uint8)
    calls = {
        "load": lambda: device.load(gemm(2, 2, 2, CONFIG)),
        "run": lambda: device.run(values),
        "execute": lambda: device.execute([_HALT], nothing, nothing),
    }
    try:
        for name, call in calls.items():
            with pytest.raises(openmxu.DeviceError, match=rf"^{name}\(\) was called while another thread uses"):
                call()
    finally:
        device.may_go_on.set()
        thread.join()
    assert (results[0]["y"] == expected["y"]).all()
    # Now it is this thread's turn.
    assert (device.run(values)["y"] == expected["y"]).all()


def test_logging_is_silent_unless_it_is_set_up():
    code = """if True:
        import openmxu, numpy
        from openmxu.arch.isa import Instruction
        device = openmxu.open_device("interpreter", openmxu.Config(size=4))
        memory = numpy.zeros(0, numpy.uint8)
        try:
            device.execute([Instruction(0xEE), Instruction(0)], memory, memory)
        except Exception as error:
            print(type(error).__name__)"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stderr == ""


def test_stages_and_faults_are_logged(caplog):
    caplog.set_level(logging.DEBUG, "openmxu")
    program = openmxu.compile(DIGITS_MODEL, CONFIG)
    with openmxu.open_device("interpreter", CONFIG) as device:
        device.load(program)
        nothing = np.zeros(0, np.uint8)
        with pytest.raises(openmxu.DeviceFault):
            device.execute([format_named("Read_Host_Memory")(rows=1), _HALT], nothing, nothing)
    found = {(record.name, record.levelno) for record in caplog.records}
    assert {
        ("openmxu.compiler", logging.DEBUG),
        ("openmxu.compiler.translate", logging.INFO),
        ("openmxu.device", logging.DEBUG),
        ("openmxu.sim.interpreter.device", logging.WARNING),
    } <= found
    assert f"{len(program.instructions)} instructions" in caplog.text


def test_quantizing_leaves_the_applications_logging_alone(caplog):
    """Messages of others pass meanwhile, those of ONNX Runtime's quantizer do not reach the root logger's handlers."""
    from openmxu.quantizer import static

    root = logging.getLogger()
    before = list(root.handlers), list(root.filters), logging.root.manager.disable
    with static._quiet():
        logging.warning("from the application")
        logging.getLogger("application").error("from another logger")
        theirs = root.makeRecord("root", logging.WARNING, static_path("quantize.py"), 1, "advice", (), None)
        root.handle(theirs)
        assert logging.root.manager.disable == before[2]
    assert (list(root.handlers), list(root.filters), logging.root.manager.disable) == before
    assert "from the application" in caplog.text
    assert "from another logger" in caplog.text
    assert "advice" not in caplog.text


def static_path(name: str) -> str:
    """The path of a module of ONNX Runtime's quantizer."""
    import onnxruntime

    return str(Path(onnxruntime.__file__).parent / "quantization" / name)


def test_not_a_number_is_refused():
    images = digits_test_split()[0][:6].copy()
    program = openmxu.compile(DIGITS_MODEL, CONFIG)
    images[3, 17] = np.inf  # saturates
    with openmxu.open_device("interpreter", CONFIG) as device:
        program.run(device, images)
        images[4, 2] = images[5, 0] = np.nan
        with pytest.raises(openmxu.InputError, match=r"^input 'image' .*, but \[4, 2\] is nan: 2 of 384 are not$"):
            program.run(device, images)


@pytest.mark.parametrize("count", [0, 1, 7])
def test_progress_counts_executions(count):
    program = gemm(3, 4, 5, CONFIG)
    calls: list[tuple[int, int]] = []
    with openmxu.open_device("interpreter", CONFIG) as device:
        device.load(program)
        device.run(gemm_input(max(count, 1), 4)[:count], progress=lambda done, total: calls.append((done, total)))
    executions = program.executions(count)
    assert calls == [(number, executions) for number in range(1, executions + 1)]


def test_an_unusable_cache_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    for folder, reason in ((tmp_path / "file", "file exists"), (tmp_path / "file" / "cache", "not a directory")):
        monkeypatch.setenv(CACHE_VARIABLE, str(folder))
        with pytest.raises(errors.CacheError, match=rf"cannot be kept in {folder}: {reason}; set OPENMXU_CACHE to a"):
            library_path(CONFIG)
    assert (tmp_path / "file").read_text() == "no folder"
