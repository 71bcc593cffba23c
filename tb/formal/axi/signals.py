"""The signals of AXI ports, by the names of the specification."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Value
from amaranth.lib import wiring

__all__ = ["Channel", "LitePort", "ReadPort", "WritePort"]

_ADDRESS = ("id", "addr", "len", "size", "burst", "lock", "cache", "prot", "qos")


@dataclass(frozen=True)
class Channel:
    """One channel of a port.

    Attributes
    ----------
    name
        Its name in the specification, such as ``AR``.
    valid, ready
        Handshake.
    fields
        The other signals, without prefix, such as ``addr``.
    """

    name: str
    valid: Value
    ready: Value
    fields: dict[str, Value]

    @classmethod
    def of(cls, top: wiring.Component, prefix: str, name: str, fields: tuple[str, ...]) -> Channel:
        """The channel with the signals ``<prefix>_<name><field>`` of a component."""

        def signal(field: str) -> Value:
            return Value.cast(getattr(top, f"{prefix}_{name}{field}"))

        return cls(name.upper(), signal("valid"), signal("ready"), {field: signal(field) for field in fields})

    def __getitem__(self, field: str) -> Value:
        return self.fields[field]

    @property
    def payload(self) -> Value:
        """All signals that have to stay while the channel waits."""
        return Cat(self.fields.values())

    @property
    def transfers(self) -> Value:
        """A transfer takes place in this cycle."""
        return self.valid & self.ready


class ReadPort:
    """The read channels of an AXI4 port: ``ar``, ``r``."""

    def __init__(self, top: wiring.Component, prefix: str) -> None:
        self.ar = Channel.of(top, prefix, "ar", _ADDRESS)
        self.r = Channel.of(top, prefix, "r", ("id", "data", "resp", "last"))


class WritePort:
    """The write channels of an AXI4 port: ``aw``, ``w``, ``b``."""

    def __init__(self, top: wiring.Component, prefix: str) -> None:
        self.aw = Channel.of(top, prefix, "aw", _ADDRESS)
        self.w = Channel.of(top, prefix, "w", ("data", "strb", "last"))
        self.b = Channel.of(top, prefix, "b", ("id", "resp"))


class LitePort:
    """The channels of an AXI4-Lite port: ``aw``, ``w``, ``b``, ``ar``, ``r``."""

    def __init__(self, top: wiring.Component, prefix: str) -> None:
        self.aw = Channel.of(top, prefix, "aw", ("addr", "prot"))
        self.w = Channel.of(top, prefix, "w", ("data", "strb"))
        self.b = Channel.of(top, prefix, "b", ("resp",))
        self.ar = Channel.of(top, prefix, "ar", ("addr", "prot"))
        self.r = Channel.of(top, prefix, "r", ("data", "resp"))
