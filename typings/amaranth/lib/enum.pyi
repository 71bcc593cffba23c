"""Enumerations with a shape, whose members have names and values as any others."""

import enum

class Enum(enum.Enum):  # type: ignore[misc]  # it has no members by itself
    def __init_subclass__(cls, *, shape: object = ..., view_class: object = ...) -> None: ...
