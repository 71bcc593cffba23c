"""What a client's requests do with the device of a server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from openmxu.arch.errors import OpenmxuError
from openmxu.arch.events import Event
from openmxu.arch.isa import WORD_BYTES, Instruction
from openmxu.device import Device, DeviceError, DeviceFault, DeviceHang, NotLoadedError
from openmxu.remote.contents import split
from openmxu.remote.kept_programs import KeptPrograms, digest_of
from openmxu.remote.messages import Action, FailureKind, Reply

__all__ = ["Operations", "RefusedError", "failure"]

_KINDS = ((DeviceFault, "FAULT"), (DeviceHang, "HANG"), (NotLoadedError, "NOT_LOADED"), (DeviceError, "DEVICE_ERROR"))


class RefusedError(OpenmxuError, ValueError):
    """A request is malformed."""


class Operations:
    """Requests on a device.

    Parameters
    ----------
    device
        It belongs to one client meanwhile.
    programs
        Those that the server keeps.
    """

    def __init__(self, device: Device, programs: KeptPrograms) -> None:
        self._device = device
        self._programs = programs
        self._actions = {
            Action.RESET: device.reset,
            Action.SCRUB: device.scrub,
            Action.CLEAR_COUNTERS: device.clear_counters,
        }

    def replies(self, request: Any, content: bytes) -> Iterator[Any]:
        """Execute an operation; whatever happens is a reply.

        Raises
        ------
        Exception
            A defect of this program.
        """
        try:
            yield from self._execute(request, content)
        except RefusedError as error:
            yield failure("REFUSED", f"the server refuses a malformed request: {error}")
        except DeviceError as error:
            yield failure(next(name for kind, name in _KINDS if isinstance(error, kind)), str(error), error)
        except ValueError as error:
            yield failure("VALUE", str(error))
        except MemoryError:
            yield failure("VALUE", "not enough memory at the server")

    def _execute(self, request: Any, content: bytes) -> Iterator[Any]:
        match request.WhichOneof("operation"):
            case "load":
                return self._load(request.load.digest, content)
            case "run_segment":
                outputs = self._device.run_segment(request.run_segment.start, content)
                return split(Reply, outputs, done={})
            case "execute":
                return self._run_instructions(request.execute, content)
            case "action":
                return self._act(request.action)
            case other:
                raise RefusedError(f"{other} is no operation")

    def _load(self, digest: bytes, content: bytes) -> Iterator[Any]:
        if content:
            if digest_of(content) != digest:
                raise RefusedError("the program is not the one of the digest")
            program = self._programs.keep(content)
        else:
            found = self._programs.find(digest)
            if found is None:
                yield Reply(done={"is_missing": True})
                return
            program = found
        self._device.load(program)
        yield Reply(done={})

    def _run_instructions(self, execute: Any, content: bytes) -> Iterator[Any]:
        words = execute.instructions * WORD_BYTES
        wanted = words + execute.host_bytes + execute.weight_bytes
        if len(content) != wanted:
            raise RefusedError(f"instructions and memories are {wanted} bytes, but there are {len(content)}")
        instructions = [
            Instruction(int.from_bytes(content[first : first + WORD_BYTES], "little"))
            for first in range(0, words, WORD_BYTES)
        ]
        host = np.frombuffer(bytearray(content[words : words + execute.host_bytes]), np.uint8)
        weights = np.frombuffer(content[words + execute.host_bytes :], np.uint8)
        try:
            events = self._device.execute(instructions, host, weights)
        except DeviceFault as error:
            message = failure("FAULT", str(error), error)
            yield from split(Reply, host.tobytes(), failure=message.failure)
            return
        yield from split(Reply, host.tobytes(), done={"events": _events(events)})

    def _act(self, action: int) -> Iterator[Any]:
        if action == Action.READ_COUNTERS:
            yield Reply(done={"counters": {int(counter): int(n) for counter, n in self._device.counters.items()}})
            return
        if action not in self._actions:
            raise RefusedError(f"there is no action {action}")
        self._actions[action]()
        yield Reply(done={})


def failure(kind: str, message: str, error: Exception | None = None) -> Any:
    """The reply for an exception."""
    fields: dict[str, Any] = {"kind": getattr(FailureKind, kind), "message": message}
    if isinstance(error, DeviceFault):
        word = error.instruction.word.to_bytes(WORD_BYTES, "little")
        fields |= {"code": int(error.code), "index": error.index, "instruction": word, "events": _events(error.events)}
    return Reply(failure=fields)


def _events(events: Iterable[Event]) -> list[dict[str, int]]:
    return [
        {"kind": int(event.kind), "index": event.index, "tag": event.tag, "fault": int(event.fault)} for event in events
    ]
