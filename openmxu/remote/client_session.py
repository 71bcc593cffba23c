"""One client's use of the device of a server, from its turn to the end of its stream."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from openmxu.device import DeviceError
from openmxu.remote.contents import Joiner, TooLongError
from openmxu.remote.kept_programs import KeptPrograms
from openmxu.remote.lent_device import LentDevice
from openmxu.remote.messages import grpc
from openmxu.remote.operations import Operations, failure

__all__ = ["ClientSession"]

_logger = logging.getLogger(__name__)


class ClientSession:
    """Executes the requests of a client in a separate thread, which clears the device at the end.

    The thread ends when the client's stream does, whatever the reason, and when the operation that the device was busy
    with has ended.

    Parameters
    ----------
    name
        The client, for people.
    requests
        Its requests; ends, or raises ``grpc.RpcError``, when the client has gone.
    lent, programs
        Those of the server.
    ready
        The first reply when the device is ready.
    at_end
        Called with this session when the device is clear.

    Attributes
    ----------
    has_ended : bool
        Whether the device is clear and no further reply comes.
    """

    def __init__(
        self,
        name: str,
        requests: Iterable[Any],
        lent: LentDevice,
        programs: KeptPrograms,
        ready: Callable[[], Any],
        at_end: Callable[[ClientSession], None],
    ) -> None:
        self._name = name
        self._requests = requests
        self._lent = lent
        self._programs = programs
        self._ready = ready
        self._at_end = at_end
        self._replies: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._idle_since: float | None = None
        self.has_ended = False
        self._thread = threading.Thread(target=self._run, name=f"session of {name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def idle_seconds(self) -> float:
        """How long the device has had nothing to do."""
        since = self._idle_since
        return 0.0 if since is None else time.monotonic() - since

    def next_replies(self, timeout: float) -> Iterator[Any]:
        """The replies that come within some seconds, none if none comes, and those right behind them."""
        reply = self._take(timeout)
        while reply is not None:
            yield reply
            if reply.WhichOneof("result"):
                return
            reply = self._take(None)

    def wake(self) -> None:
        """End a call of :meth:`next_replies`."""
        self._replies.put(None)

    def join(self, timeout: float | None) -> bool:
        """Wait until the device is clear; returns whether it is."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _take(self, timeout: float | None) -> Any:
        try:
            return self._replies.get(timeout=timeout)
        except queue.Empty:
            return None

    def _run(self) -> None:
        try:
            self._serve()
        except grpc.RpcError:
            _logger.info("%s has gone", self._name)
        except Exception as error:
            _logger.exception("a defect of openmxu ends the session of %s", self._name)
            self._replies.put(failure("DEFECT", f"{type(error).__name__}: {error} (a defect of openmxu at the server)"))
        finally:
            self._idle_since = None
            self._lent.clear()
            self._at_end(self)
            self.has_ended = True
            self.wake()

    def _serve(self) -> None:
        try:
            device = self._lent.take()
        except DeviceError as error:
            self._replies.put(failure("DEVICE_ERROR", str(error)))
            return
        operations, content = Operations(device, self._programs), Joiner()
        self._replies.put(self._ready())
        self._idle_since = time.monotonic()
        for request in self._requests:
            self._idle_since = None
            try:
                content.add(request.content)
            except TooLongError as error:
                self._replies.put(failure("REFUSED", str(error)))
                return
            if request.WhichOneof("operation") is not None:
                for reply in operations.replies(request, content.take()):
                    self._replies.put(reply)
            elif not request.content:
                self._replies.put(failure("REFUSED", "the server refuses a malformed request: it has no operation"))
            self._idle_since = time.monotonic()
