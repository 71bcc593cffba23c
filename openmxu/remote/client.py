"""A device that a server at another address lends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from openmxu.arch.config import Config
from openmxu.arch.events import Counter, Event, EventKind
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import Instruction, encode_program
from openmxu.device import Device, DeviceError, DeviceFault, DeviceHang, NotLoadedError, in_one_thread
from openmxu.disassembler import format_instruction
from openmxu.program import Program
from openmxu.remote.address import Address
from openmxu.remote.connection import Connection, configuration, describe
from openmxu.remote.kept_programs import digest_of
from openmxu.remote.messages import Action, FailureKind
from openmxu.remote.settings import Access
from openmxu.segments.device_segment import DeviceSegment
from openmxu.sim.interpreter import check_memory, check_program

__all__ = ["RemoteDevice", "remote_configuration"]

PATIENCE = 30.0
"""Seconds without a sign of life after which a server is lost."""


def remote_configuration(address: str, **access: Any) -> Config:
    """The configuration of the device at an address, which may be lent to another client meanwhile.

    Raises
    ------
    openmxu.remote.errors.RemoteError, openmxu.remote.errors.AddressError, openmxu.remote.errors.SettingError
        As :class:`RemoteDevice`.
    """
    return configuration(describe(Address.parse(address), Access.of(os.environ, **access)))


class RemoteDevice(Device):
    """The device at an address, which belongs to this client until it is closed; waits for the clients before it.

    Programs are sent once: the server keeps them by their digest. Only inputs and outputs of the device's segments
    travel for a run; the host's segments are computed here.

    Parameters
    ----------
    address
        grpc://HOST:PORT.
    patience
        Seconds without a sign of life after which the server is lost.
    on_wait
        Called with a line of text while other clients come first.
    access
        As :class:`~openmxu.remote.settings.Access`; where nothing is given, the environment counts.

    Raises
    ------
    openmxu.remote.errors.AddressError
        The address has another form.
    openmxu.remote.errors.SettingError
        Certificates and tokens do not fit together, or a file cannot be read.
    openmxu.remote.errors.RemoteError
        The server cannot be reached, or refuses the client: versions, token or certificate are wrong.
    """

    def __init__(
        self,
        address: str,
        *,
        patience: float = PATIENCE,
        on_wait: Callable[[str], None] | None = None,
        **access: str | Path | bool | None,
    ) -> None:
        place = Address.parse(address)
        self._connection = Connection(place, Access.of(os.environ, **access), patience=patience, on_wait=on_wait)
        self.config = configuration(self._connection.description)

    @property
    def served(self) -> str:
        """The kind of device that the server has, as of ``--device``."""
        return str(self._connection.description.device)

    @in_one_thread
    def execute(
        self,
        program: Iterable[Instruction],
        host_memory: NDArray[np.uint8],
        weight_memory: NDArray[np.uint8],
    ) -> list[Event]:
        """Run ``program``; see :meth:`openmxu.device.Device.execute`.

        Raises
        ------
        openmxu.remote.errors.ConnectionLostError
            The server or the way to it has failed; the device must be opened again.
        """
        instructions = check_program(program)
        check_memory("host_memory", host_memory, writeable=True)
        check_memory("weight_memory", weight_memory)
        sizes = {
            "instructions": len(instructions),
            "host_bytes": host_memory.size,
            "weight_bytes": weight_memory.size,
        }
        words = encode_program(instructions).tobytes()
        content = b"".join((words, host_memory.tobytes(), weight_memory.tobytes()))
        reply, left = self._connection.ask(content, execute=sizes)
        if len(left) == host_memory.size:  # not if the request was refused
            host_memory[:] = np.frombuffer(left, np.uint8)
        return _events(_succeeded(reply).events)

    @property
    def counters(self) -> Mapping[Counter, int]:
        """The counters of the device, as of :attr:`openmxu.device.Device.counters`."""
        done = self._act(Action.READ_COUNTERS)
        return {Counter(number): count for number, count in sorted(done.counters.items())}

    def clear_counters(self) -> None:
        """Set all counters to 0."""
        self._act(Action.CLEAR_COUNTERS)

    def reset(self) -> None:
        """Forget configuration registers and queued weights; memories keep their contents."""
        self._act(Action.RESET)

    def scrub(self) -> None:
        """Clear the core's memories and everything that :meth:`reset` clears."""
        self._act(Action.SCRUB)

    def close(self) -> None:
        """Give the device back to the server, which clears it."""
        self._connection.close()

    def _place(self, program: Program) -> None:
        content = program.to_bytes()
        digest = digest_of(content)
        reply, _ = self._connection.ask(load={"digest": digest})
        if _succeeded(reply).is_missing:
            reply, _ = self._connection.ask(content, load={"digest": digest})
            _succeeded(reply)

    def _run_loaded(self, program: Program, segment: DeviceSegment) -> None:
        inputs = segment.read_inputs(self._image, self.config.size)
        reply, outputs = self._connection.ask(inputs, run_segment={"start": segment.start})
        _succeeded(reply)
        segment.write_outputs(outputs, self._image, self.config.size)

    def _act(self, action: int) -> Any:
        reply, _ = self._connection.ask(action=action)
        return _succeeded(reply)


def _succeeded(reply: Any) -> Any:
    """What a successful operation has to say; raises the server's exception here otherwise."""
    if reply.WhichOneof("result") == "failure":
        _fail(reply.failure)
    return reply.done


def _fail(failure: Any) -> NoReturn:
    if failure.kind == FailureKind.FAULT:
        instruction = Instruction(int.from_bytes(failure.instruction, "little"))
        fault = DeviceFault(FaultCode(failure.code), failure.index, instruction, format_instruction(instruction))
        fault.args = (failure.message,)  # which may have details, as addresses
        fault.events = _events(failure.events)
        raise fault
    kinds: dict[int, type[Exception]] = {
        FailureKind.HANG: DeviceHang,
        FailureKind.NOT_LOADED: NotLoadedError,
        FailureKind.VALUE: ValueError,
    }
    raise kinds.get(failure.kind, DeviceError)(failure.message)


def _events(events: Iterable[Any]) -> list[Event]:
    return [Event(EventKind(event.kind), event.index, event.tag, FaultCode(event.fault)) for event in events]
