"""The way from a client to a server: one stream of requests and replies."""

from __future__ import annotations

import getpass
import logging
import os
import queue
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from openmxu.arch.config import Config
from openmxu.remote.address import Address
from openmxu.remote.contents import Joiner, split
from openmxu.remote.errors import ConnectionLostError, RemoteError
from openmxu.remote.messages import (
    CHANNEL_OPTIONS,
    CLIENT_KEY,
    DESCRIBE,
    SERVICE,
    SESSION,
    Description,
    Nothing,
    Reply,
    Request,
    grpc,
)
from openmxu.remote.settings import TOKEN_VARIABLE, Access
from openmxu.remote.versions import own_versions

__all__ = ["Connection", "configuration", "describe"]

_logger = logging.getLogger(__name__)

_SIGNS = ("waiting", "alive")
"""Replies that belong to no request."""


def describe(address: Address, access: Access, timeout: float = 10.0) -> Any:
    """The description of a device; no client waits for that.

    Raises
    ------
    RemoteError
        The server cannot be reached, or refuses it.
    openmxu.remote.errors.SettingError
        A file of certificates cannot be read.
    """
    channel = _channel(address, access)
    try:
        call = channel.unary_unary(f"/{SERVICE}/{DESCRIBE}", Nothing.SerializeToString, Description.FromString)
        return call(Nothing(), timeout=timeout, metadata=_metadata(access))
    except grpc.RpcError as error:
        raise _refusal(address, access, error) from None
    finally:
        channel.close()


def configuration(description: Any) -> Config:
    """The configuration in a description."""
    import json

    return Config(**json.loads(description.configuration))


class Connection:
    """A client's stream to a server, from the moment at which it has the device.

    Parameters
    ----------
    address, access
        The server.
    patience
        Seconds without any message after which the server is lost; it says every two seconds that it is there.
    on_wait
        Called with a line of text when other clients come first, and when their number changes.

    Attributes
    ----------
    description
        What the server says about the device.

    Raises
    ------
    RemoteError
        The server cannot be reached, or refuses the client.
    openmxu.remote.errors.SettingError
        A file of certificates cannot be read.
    """

    def __init__(
        self, address: Address, access: Access, *, patience: float, on_wait: Callable[[str], None] | None = None
    ) -> None:
        self._address = address
        self._patience = patience
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._last_sign = time.monotonic()
        self._problem: str | None = None
        channel = _channel(address, access)
        self._call = channel.stream_stream(f"/{SERVICE}/{SESSION}", Request.SerializeToString, Reply.FromString)(
            iter(self._requests.get, None), metadata=(*_metadata(access), (CLIENT_KEY, _own_name()))
        )
        # At the end of the program too, before threads are stopped wherever they are.
        self._end = weakref.finalize(self, _end, self._requests, self._call, channel)
        threading.Thread(target=_receive, args=(self._call, self._replies), name=f"{address}", daemon=True).start()
        try:
            self.description = self._await_turn(on_wait or _logger.info)
        except grpc.RpcError as error:
            self.close()
            raise _refusal(address, access, error) from None
        except BaseException:
            self.close()
            raise

    def ask(self, content: bytes = b"", **operation: Any) -> tuple[Any, bytes]:
        """Send a request and wait for its reply.

        Returns
        -------
        The reply, and its content.

        Raises
        ------
        ConnectionLostError
            The server does not answer any more, or did not the time before.
        """
        if self._problem is not None:
            raise ConnectionLostError(self._problem)
        try:
            for message in split(Request, content, **operation):
                self._requests.put(message)
            joiner = Joiner()
            while True:
                reply = self._next()
                joiner.add(reply.content)
                if reply.WhichOneof("result"):
                    return reply, joiner.take()
        except grpc.RpcError as error:
            raise self._lost(_reason(error)) from None
        except BaseException:
            # The reply would be taken for that of the next request.
            self._lost("the client was interrupted while it waited for a reply")
            raise

    def close(self) -> None:
        """Give the device back."""
        self._problem = self._problem or f"the device at {self._address} has been closed"
        self._end()

    def _await_turn(self, on_wait: Callable[[str], None]) -> Any:
        known = None
        while True:
            reply = self._next(also=_SIGNS)
            kind = reply.WhichOneof("result")
            if kind == "ready":
                return reply.ready
            if kind == "failure":
                raise RemoteError(f"the device at {self._address} fails: {reply.failure.message}")
            if kind == "waiting" and known != (place := (reply.waiting.before, reply.waiting.holder)):
                known = place
                count = "1 client comes" if place[0] == 1 else f"{place[0]} clients come"
                on_wait(f"waiting for the device at {self._address}: {count} first; {place[1]} has it now")

    def _next(self, also: tuple[str, ...] = ()) -> Any:
        """The next reply; signs of life only if asked for."""
        while True:
            try:
                reply = self._replies.get(timeout=self._patience)
            except queue.Empty:
                raise self._lost(f"it has said nothing for {self._patience:.0f} s") from None
            if isinstance(reply, grpc.RpcError):
                raise reply
            if reply is None:
                raise self._lost("it has ended the session")
            if reply.WhichOneof("result") in also or reply.WhichOneof("result") not in _SIGNS:
                return reply

    def _lost(self, reason: str) -> ConnectionLostError:
        """The error for this request, and for all later ones; the session ends."""
        self._problem = f"the server at {self._address} is lost: {reason}; open the device again"
        self._end()
        return ConnectionLostError(self._problem)


def _receive(call: Iterator[Any], replies: queue.SimpleQueue[Any]) -> None:
    """Pass replies on, in a separate thread: waiting for a call has no time limit, waiting for a queue has."""
    try:
        for reply in call:
            replies.put(reply)
        replies.put(None)
    except grpc.RpcError as error:
        replies.put(error)


def _end(requests: queue.SimpleQueue[Any], call: Any, channel: Any) -> None:
    requests.put(None)
    call.cancel()
    channel.close()


def _channel(address: Address, access: Access) -> Any:
    # Proxies of the environment are for the web.
    options = (*CHANNEL_OPTIONS, ("grpc.enable_http_proxy", 0))
    if access.is_encrypted(address):
        authority, key, certificate = access.files()
        credentials = grpc.ssl_channel_credentials(authority, key, certificate)
        return grpc.secure_channel(address.target, credentials, options)
    return grpc.insecure_channel(address.target, options)


def _metadata(access: Access) -> tuple[tuple[str, str], ...]:
    token = () if access.token is None else (("authorization", f"Bearer {access.token}"),)
    return (*own_versions().items(), *token)


def _own_name() -> str:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = "somebody"
    name = f"{user}@{socket.gethostname()}, process {os.getpid()}"
    return name.encode("ascii", "replace").decode()


def _reason(error: grpc.RpcError) -> str:
    details = " ".join((error.details() or "").split())
    return details or error.code().name.lower().replace("_", " ")


def _refusal(address: Address, access: Access, error: grpc.RpcError) -> RemoteError:
    """The error for a session that did not begin."""
    code, reason = error.code(), _reason(error)
    if code is grpc.StatusCode.UNAUTHENTICATED:
        return RemoteError(f"the server at {address} refuses the client: {reason}; {TOKEN_VARIABLE} has the token")
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return RemoteError(f"what answers at {address} is no openmxu server of this version of the protocol")
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return RemoteError(f"the server at {address} has too many clients: try again later")
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        used = "with encryption" if access.is_encrypted(address) else "without encryption"
        return RemoteError(f"no openmxu server answers at {address}, {used}: {reason}")
    return RemoteError(f"the server at {address} refuses the client: {reason}")
