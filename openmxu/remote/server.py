"""The server of a device: it lends the device to one client after the other."""

from __future__ import annotations

import functools
import hmac
import json
import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, Self

from openmxu.arch.config import Config
from openmxu.device import Device
from openmxu.remote.address import Address
from openmxu.remote.client_session import ClientSession
from openmxu.remote.errors import SettingError
from openmxu.remote.kept_programs import KeptPrograms
from openmxu.remote.lent_device import LentDevice
from openmxu.remote.messages import (
    CHANNEL_OPTIONS,
    CLIENT_KEY,
    DESCRIBE,
    KEEPALIVE_MILLISECONDS,
    SERVICE,
    SESSION,
    Description,
    Nothing,
    Reply,
    Request,
    grpc,
)
from openmxu.remote.settings import Protection
from openmxu.remote.turns import Turn, Turns
from openmxu.remote.versions import INTERFACE_KEY, VERSION_KEY, mismatch, own_versions

__all__ = ["HEARTBEAT", "IDLE_SECONDS", "Server"]

_logger = logging.getLogger(__name__)

HEARTBEAT = 2.0
"""Seconds after which a server that has nothing to say says that it is there."""

IDLE_SECONDS = 600.0
"""Seconds after which a client that does nothing loses the device, if others wait."""

MOST_CLIENTS = 64
"""Clients that have the device or wait for it."""

_SERVER_OPTIONS = (
    *CHANNEL_OPTIONS,
    ("grpc.http2.min_ping_interval_without_data_ms", KEEPALIVE_MILLISECONDS // 2),
    ("grpc.so_reuseport", 0),  # else a second server at this address would take some of the clients
)


class Server:
    """Serves a device at an address, from its making to :meth:`close`. A context manager.

    Parameters
    ----------
    name
        The kind of device, for people.
    open_device
        Opens the device: now, and again whenever it has failed.
    address
        Where to listen; with port 0 the system chooses one.
    protection
        Tokens and certificates.
    heartbeat
        Seconds between two signs of life.
    idle_seconds
        After that time a client that does nothing loses the device, if others wait.

    Attributes
    ----------
    address : Address
        Where it listens.

    Raises
    ------
    SettingError
        Other machines could use it without encryption and token, a file cannot be read, or it cannot listen there.
    openmxu.device.DeviceError
        The device cannot be opened.
    """

    def __init__(
        self,
        name: str,
        open_device: Callable[[], Device],
        address: Address,
        protection: Protection,
        *,
        heartbeat: float = HEARTBEAT,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        protection.check(address)
        self._name = name
        self._token = protection.token
        self._heartbeat = heartbeat
        self._idle_seconds = idle_seconds
        self._turns = Turns()
        self._programs = KeptPrograms()
        self._sessions: set[ClientSession] = set()
        # Describe takes threads and calls as well.
        self._server = grpc.server(
            ThreadPoolExecutor(MOST_CLIENTS + 2, "openmxu server"),
            options=_SERVER_OPTIONS,
            maximum_concurrent_rpcs=MOST_CLIENTS + 2,
        )
        self._server.add_generic_rpc_handlers((_handlers(self._describe, self._serve),))
        self.address = Address(address.host, self._listen(address, protection))
        try:
            self._lent = LentDevice(open_device)
        except BaseException:
            self._server.stop(None)
            raise
        self._server.start()

    @property
    def config(self) -> Config:
        """The configuration of the device."""
        return self._lent.config

    @property
    def is_busy(self) -> bool:
        """Whether a client has the device, or it is being cleared of that client's data."""
        return bool(self._sessions)

    def close(self, patience: float | None = None) -> None:
        """Send all clients away, and close the device when the operation that it is busy with has ended.

        Parameters
        ----------
        patience
            Seconds to wait for that; ``None`` for any time.
        """
        self._turns.close()
        for session in tuple(self._sessions):
            session.wake()
        self._server.stop(grace=2.0).wait()
        if all(session.join(patience) for session in tuple(self._sessions)):
            self._lent.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _listen(self, address: Address, protection: Protection) -> int:
        authority, key, certificate = protection.files()
        try:
            if certificate is None:
                return self._server.add_insecure_port(address.target)
            credentials = grpc.ssl_server_credentials(
                [(key, certificate)], root_certificates=authority, require_client_auth=authority is not None
            )
            return self._server.add_secure_port(address.target, credentials)
        except RuntimeError:
            # gRPC has no reason that is worth to be read.
            raise SettingError(
                f"cannot listen at {address.target}: another program does, it is no address of this machine, or the "
                "certificate does not fit the key"
            ) from None

    def _describe(self, request: Any, context: Any) -> Any:
        self._admit(context)
        return self._description()

    def _description(self) -> Any:
        versions = own_versions()
        return Description(
            version=versions[VERSION_KEY],
            interface=int(versions[INTERFACE_KEY]),
            device=self._name,
            configuration=json.dumps(self._lent.config.as_dict()),
            clients=len(self._turns),
        )

    def _admit(self, context: Any) -> str:
        """The name of a client that may use the server; others are sent away."""
        metadata = {key: value for key, value in context.invocation_metadata() if isinstance(value, str)}
        if self._token is not None:
            given = metadata.get("authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                _logger.warning("%s has no token or a wrong one", context.peer())
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token is missing or wrong")
        problem = mismatch(metadata)
        if problem is not None:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, problem)
        name = "".join(filter(str.isprintable, metadata.get(CLIENT_KEY, "")))[:100]
        return name or str(context.peer())

    def _serve(self, requests: Iterable[Any], context: Any) -> Iterator[Any]:
        """The replies to a client, from its arrival on."""
        turn = self._turns.join(self._admit(context))
        if not context.add_callback(functools.partial(self._turns.give_up, turn)):
            self._turns.give_up(turn)
            return
        yield from self._waiting(turn, context)
        if not self._turns.begin(turn):
            return
        _logger.info("%s has the device", turn.name)
        try:
            session = self._begin(turn, requests)
        except BaseException:
            self._turns.end(turn)
            raise
        context.add_callback(session.wake)
        while not session.has_ended:
            silent = True
            for reply in session.next_replies(self._heartbeat):
                silent = False
                yield reply
            if self._turns.is_closed:
                self._refuse_closed(context)
            if session.idle_seconds > self._idle_seconds and len(self._turns) > 1:
                reason = f"the device was idle for {session.idle_seconds:.0f} s while another client waited"
                _logger.info("%s loses the device: %s", turn.name, reason)
                context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, reason)
            if silent:
                yield Reply(alive={})
        yield from session.next_replies(0)

    def _waiting(self, turn: Turn, context: Any) -> Iterator[Any]:
        """Replies for a client until it is the first one in the queue, or has gone."""
        place = None
        while True:
            place = self._turns.await_change(turn, place, self._heartbeat)
            if self._turns.is_closed:
                self._refuse_closed(context)
            if place is None or not place.before:
                return
            yield Reply(waiting={"before": place.before, "holder": place.holder})

    def _begin(self, turn: Turn, requests: Iterable[Any]) -> ClientSession:
        def end(session: ClientSession) -> None:
            self._sessions.discard(session)
            self._turns.end(turn)
            _logger.info("%s has given the device back, and it is clear", turn.name)

        def ready() -> Any:
            return Reply(ready=self._description())

        session = ClientSession(turn.name, requests, self._lent, self._programs, ready, end)
        self._sessions.add(session)
        session.start()
        return session

    def _refuse_closed(self, context: Any) -> NoReturn:
        context.abort(grpc.StatusCode.UNAVAILABLE, "the server ends")
        raise AssertionError("abort raises")


def _handlers(describe: Callable[..., Any], serve: Callable[..., Any]) -> Any:
    return grpc.method_handlers_generic_handler(
        SERVICE,
        {
            DESCRIBE: grpc.unary_unary_rpc_method_handler(describe, Nothing.FromString, Description.SerializeToString),
            SESSION: grpc.stream_stream_rpc_method_handler(serve, Request.FromString, Reply.SerializeToString),
        },
    )
