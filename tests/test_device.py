"""Programs that stay on a device: what is transferred and when, and the same results as on a new device."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest

import openmxu
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import WORD_BYTES, Instruction, format_named
from openmxu.compiler import evaluate, gemm, gemm_input, gemm_network
from openmxu.driver import MappedDevice
from openmxu.models import DIGITS_MODEL, digits_test_split
from openmxu.sim.interpreter import Interpreter
from tests.compiler.models.recurrent_models import RecurrentModel
from tests.driver.registers import CONFIG, InterpretedRegisters

_HALT = format_named("Halt")()
_SHAPES = [(6, 5, 7), (3, 20, 9)]


@pytest.fixture
def registers() -> InterpretedRegisters:
    return InterpretedRegisters()


@pytest.fixture(params=["interpreter", "mapped"])
def device(request: pytest.FixtureRequest, registers: InterpretedRegisters) -> Iterator[openmxu.Device]:
    with Interpreter(CONFIG) if request.param == "interpreter" else MappedDevice(registers) as device:
        yield device


def assert_product(device: openmxu.Device, shape: tuple[int, int, int], seed: int = 0) -> None:
    """Check the loaded program, a product of this shape, with more rows than one execution takes."""
    values = gemm_input(shape[0] + 1, shape[1], seed=seed)
    assert (device.run(values)["y"] == evaluate(gemm_network(*shape), values)).all()


def test_runs_of_a_loaded_program(device: openmxu.Device) -> None:
    device.load(gemm(*_SHAPES[0], CONFIG))
    for seed in range(3):
        assert_product(device, _SHAPES[0], seed)


def test_a_program_replaces_the_one_before(device: openmxu.Device) -> None:
    programs = [gemm(*shape, CONFIG) for shape in _SHAPES]
    for number in (0, 1, 0):
        device.load(programs[number])
        assert_product(device, _SHAPES[number])


def test_run_without_a_program(device: openmxu.Device) -> None:
    with pytest.raises(openmxu.NotLoadedError, match=r"^no program is loaded: call load\(program\) before run\("):
        device.run(gemm_input(6, 5))
    assert issubclass(openmxu.NotLoadedError, openmxu.DeviceError)


def test_a_program_for_another_device(device: openmxu.Device) -> None:
    """It changes nothing."""
    device.load(gemm(*_SHAPES[0], CONFIG))
    with pytest.raises(openmxu.InputError, match=r"compiled for Config\(size=8.*but the device is Config\(size=4"):
        device.load(gemm(*_SHAPES[1], openmxu.Config()))
    assert_product(device, _SHAPES[0])


def test_wrong_inputs(device: openmxu.Device) -> None:
    device.load(gemm(*_SHAPES[0], CONFIG))
    with pytest.raises(openmxu.InputError, match=r"input 'a' must be uint8 of shape \(batch, 5\), not float32"):
        device.run(np.zeros((6, 5), np.float32))
    assert_product(device, _SHAPES[0])


def test_what_leaves_a_program_loaded(device: openmxu.Device) -> None:
    device.load(gemm(*_SHAPES[0], CONFIG))
    host, weights = (np.full(size, 0xAA, np.uint8) for size in (5000, 100))
    device.execute([_HALT], host, weights)
    assert_product(device, _SHAPES[0])
    device.reset()
    assert_product(device, _SHAPES[0], 1)
    device.scrub()
    assert_product(device, _SHAPES[0], 2)


def test_a_program_that_faults(device: openmxu.Device) -> None:
    """It stays loaded, and its fault is raised again; the next program is as on a new device."""
    program = gemm(*_SHAPES[0], CONFIG)
    device.load(dataclasses.replace(program, instructions=(Instruction(0xEE), _HALT)))
    for _ in range(2):
        with pytest.raises(openmxu.DeviceFault, match=r"^instruction 0 .*: UNKNOWN_OPCODE"):
            device.run(gemm_input(6, 5))
    device.load(program)
    assert_product(device, _SHAPES[0])


def test_only_inputs_and_outputs_are_transferred(registers: InterpretedRegisters) -> None:
    """The digits: 64 bytes of an image as integers, 12 of the results."""
    images = digits_test_split()[0][:3]
    program = openmxu.compile(DIGITS_MODEL, CONFIG, batch=1)
    expected = program.run(Interpreter(CONFIG), images)["logits"]
    with MappedDevice(registers) as device:
        device.load(program)
        instructions = len(program.instructions) * WORD_BYTES
        loading = {"host written": instructions + program.host_bytes, "weight written": len(program.weights)}
        assert registers.moved == {**loading, "host read": 0}
        for number, image in enumerate(images):
            device.load(program)
            before, writes = registers.moved.copy(), registers.writes
            assert (device.run(image[np.newaxis])["logits"] == expected[number]).all()
            moved = {name: count - before[name] for name, count in registers.moved.items()}
            assert moved == {"host written": 64, "weight written": 0, "host read": 12}
        # ENABLE, RING_HEAD, INTERRUPT_STATUS, POP_EVENT, ENABLE: nothing that the first run has set already.
        assert registers.writes - writes == 5


def test_a_run_that_is_interrupted(registers: InterpretedRegisters, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is reset before it runs again, and is given its windows again; the program is still there."""

    def interrupt() -> bool:
        raise KeyboardInterrupt

    with MappedDevice(registers) as device:
        device.load(gemm(*_SHAPES[0], CONFIG))
        with monkeypatch.context() as patch:
            patch.setattr(registers, "wait", interrupt)
            with pytest.raises(KeyboardInterrupt):
                device.run(gemm_input(6, 5))
        resets, moved = registers.resets, registers.moved["weight written"]
        assert_product(device, _SHAPES[0])
        assert (registers.resets, registers.moved["weight written"]) == (resets + 1, moved)


def test_memory_that_is_too_small() -> None:
    """Neither program is there afterwards, and the one that fits can be loaded again."""
    program = gemm(*_SHAPES[0], CONFIG)
    with MappedDevice(InterpretedRegisters(1 << 15, 4096), ring_bytes=4096) as device:
        device.load(program)
        for shape, message in (
            ((6, 200, 200), r"^the ring of the program's instructions has \d+ bytes, more than the 28672 there are$"),
            ((600, 40, 4), r"^host_memory has \d+ bytes, more than the \d+ there are$"),
            ((6, 100, 100), r"^weight_memory has \d+ bytes, more than the 4096 there are$"),
        ):
            with pytest.raises(ValueError, match=message):
                device.load(gemm(*shape, CONFIG))
            with pytest.raises(openmxu.NotLoadedError):
                device.run(gemm_input(6, 5))
        device.load(program)
        assert_product(device, _SHAPES[0])


def test_states(device: openmxu.Device) -> None:
    """A run begins with states of 0 unless it keeps them; a session loads its program where another one is."""
    model = RecurrentModel("GRU", 2, states=True, outputs=["Y", "Y_h"])
    program = openmxu.compile(model.model(), CONFIG, batch=2, states={"h0": "Y_h"})
    x = model.values(2)["x"]
    device.load(program)
    first = device.run(x)["Y"]
    second = device.run(x, keep_states=True)["Y"]
    assert not np.array_equal(first, second)
    assert np.array_equal(device.run(x)["Y"], first)
    session = program.session(device)
    assert np.array_equal(session.run(x)["Y"], first)
    saved = session.states()
    device.load(gemm(*_SHAPES[0], CONFIG))
    assert_product(device, _SHAPES[0])
    session.reset(saved)
    assert np.array_equal(session.run(x)["Y"], second)


def test_fault_without_a_code_has_a_message() -> None:
    fault = openmxu.DeviceFault(FaultCode.NONE, 3, _HALT, "halt")
    assert str(fault) == "instruction 3 (halt): NONE: the device gives no reason for the fault"
