"""The messages of ``device.proto``, as classes of protobuf.

``device.binpb`` is the compiled ``device.proto``. Unlike the Python modules that the compiler of protobuf writes, it
works with every release of protobuf. This command makes it::

    python -m grpc_tools.protoc -I. --descriptor_set_out=openmxu/remote/device.binpb openmxu/remote/device.proto
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from openmxu.device import DeviceError

__all__ = [
    "CHANNEL_OPTIONS",
    "CLIENT_KEY",
    "DESCRIBE",
    "KEEPALIVE_MILLISECONDS",
    "SERVICE",
    "SESSION",
    "Action",
    "Description",
    "FailureKind",
    "MissingPackageError",
    "Nothing",
    "Reply",
    "Request",
    "grpc",
]


class MissingPackageError(DeviceError):
    """Packages that remote devices need are not installed."""


# Otherwise gRPC's C library writes its own lines to stderr, beside the error that is raised.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
try:
    import grpc
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError:
    raise MissingPackageError(
        "devices at an address need grpcio and protobuf: install them with: pip install 'openmxu[remote]'"
    ) from None

_PACKAGE = "openmxu.remote.v1"
SERVICE = f"{_PACKAGE}.Device"
DESCRIBE, SESSION = "Describe", "Session"

CLIENT_KEY = "openmxu-client"
"""Metadata of Session: the client's name for people."""

KEEPALIVE_MILLISECONDS = 10_000

CHANNEL_OPTIONS = (
    ("grpc.keepalive_time_ms", KEEPALIVE_MILLISECONDS),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_MILLISECONDS),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)
"""Options of both sides: after 20 seconds without an answer to a ping, the other side is gone."""


def _pool() -> Any:
    """The types, apart from those of other packages in this process."""
    pool = descriptor_pool.DescriptorPool()
    compiled = descriptor_pb2.FileDescriptorSet.FromString((Path(__file__).parent / "device.binpb").read_bytes())
    for file in compiled.file:
        pool.Add(file)
    return pool


_POOL = _pool()


def _message(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


class _Numbers:
    """The values of an enumeration as attributes."""

    def __init__(self, name: str) -> None:
        self._values = {value.name: value.number for value in _POOL.FindEnumTypeByName(f"{_PACKAGE}.{name}").values}

    def __getattr__(self, name: str) -> int:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(name) from None


Nothing, Description, Request, Reply = map(_message, ("Nothing", "Description", "Request", "Reply"))
Action, FailureKind = _Numbers("Action"), _Numbers("Failure.Kind")
