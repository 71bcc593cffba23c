"""Work that may crash or never end, in child processes: whatever becomes of a child, its caller hears of it.

Children are forks, which share what has been prepared. They are forks of a helper process rather than of the caller's,
because a process with several threads, as a worker of Dask is, should not fork.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Generic, TypeVar

__all__ = ["ChildWork", "Ending", "run_in_child", "serve"]

Shared = TypeVar("Shared")
Task = TypeVar("Task")

_HELPER = "import sys; from openmxu.cluster.children import serve; serve(int(sys.argv[1]))"


@dataclass(frozen=True)
class ChildWork(Generic[Shared, Task]):
    """What children do. Both are functions of modules.

    Attributes
    ----------
    prepare
        Called with the shared value and the task before a child begins, in the helper process, where what it caches
        remains for all children.
    run
        Called in the child with the shared value, the task, and a function that sends a message to the caller.
    """

    prepare: Callable[[Shared, Task], object]
    run: Callable[[Shared, Task, Callable[[Any], None]], None]


@dataclass(frozen=True)
class Ending:
    """How a child ended.

    Attributes
    ----------
    messages
        All that it sent.
    status
        Its exit status, or minus the number of the signal that ended it; ``None`` if it was stopped because it sent
        nothing for too long.
    """

    messages: tuple[Any, ...]
    status: int | None


def run_in_child(
    work: ChildWork[Shared, Task], shared: Shared, task: Task, *, key: str, silence: float | None = None
) -> Ending:
    """Run a task in a child process and wait for its end.

    Parameters
    ----------
    shared, task
        Sent from process to process; ``shared`` once for each ``key``.
    key
        A text that differs for other work and other shared values.
    silence
        Seconds between two messages after which the child is stopped.

    Raises
    ------
    RuntimeError
        Preparation failed; the message has its error.
    """
    helper: _Helper | None = getattr(_helpers, "helper", None)
    if helper is None or helper.key != key:
        if helper is not None:
            helper.close()
        helper = _helpers.helper = _Helper(key, (work, shared))
    try:
        return helper.run(task, silence)
    except BaseException:
        helper.close()
        _helpers.helper = None
        raise


class _Helper:
    """The process that children are forks of. It ends when its connection does."""

    def __init__(self, key: str, first: object) -> None:
        self.key = key
        self._connection, theirs = Pipe()
        command = [sys.executable, "-c", _HELPER, str(theirs.fileno())]
        path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),)
        )
        theirs.close()
        atexit.register(self.close)
        self._connection.send(first)

    def run(self, task: object, silence: float | None) -> Ending:
        self._connection.send((task, silence))
        try:
            answer = self._connection.recv()
        except EOFError:
            raise RuntimeError(f"the helper process ended with status {self._process.wait()}") from None
        if isinstance(answer, str):
            raise RuntimeError(answer)
        ending: Ending = answer
        return ending

    def close(self) -> None:
        atexit.unregister(self.close)
        self._connection.close()
        self._process.wait()


_helpers = threading.local()


def serve(descriptor: int) -> None:
    """Run children for the connection with this file descriptor; the helper process does this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal: the caller ends this one
    connection = Connection(descriptor)
    try:
        work, shared = connection.recv()
        while True:
            task, silence = connection.recv()
            try:
                work.prepare(shared, task)
            except Exception as error:
                connection.send(f"{type(error).__name__}: {error}")
                continue
            connection.send(_ending(connection, work.run, shared, task, silence))
    except (EOFError, ConnectionError):
        pass


def _ending(
    connection: Connection, run: Callable[..., None], shared: object, task: object, silence: float | None
) -> Ending:
    """Fork a child and wait for its end."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(run, shared, task, sender))
    process.start()
    sender.close()
    messages = []
    try:
        while ready := wait([receiver, connection], silence):
            if receiver not in ready:
                raise EOFError("the caller is gone")
            try:
                messages.append(receiver.recv())
            except EOFError:
                process.join()
                return Ending(tuple(messages), process.exitcode)
        return Ending(tuple(messages), None)
    finally:
        process.kill()
        process.join()
        receiver.close()


def _run(run: Callable[..., None], shared: object, task: object, sender: Connection) -> None:
    run(shared, task, sender.send)
