"""Why a model could not be compiled."""

from __future__ import annotations

from openmxu.arch.errors import OpenmxuError

__all__ = ["CapacityError", "CompileError", "ModelError", "ProfileError", "UnsupportedOperatorError"]


class CompileError(OpenmxuError, ValueError):
    """A model could not be compiled; the message is one line."""


class ModelError(CompileError):
    """The model cannot be read, is no valid ONNX, or holds a value that has no meaning here."""


class UnsupportedOperatorError(CompileError):
    """The model is valid, but holds an operator, or a use of one, that the compiler does not translate.

    Attributes
    ----------
    node : str
        Name of the node, or of its first output where it has no name.
    operator : str
        Its operator.
    reason : str
        What is not supported, and what is.
    """

    def __init__(self, node: str, operator: str, reason: str) -> None:
        self.node = node
        self.operator = operator
        self.reason = reason
        super().__init__(f"node {node!r} ({operator}): {reason}")


class ProfileError(CompileError):
    """The model needs instructions that cores of the configuration's profile do not have."""


class CapacityError(CompileError):
    """The configuration's memories or addresses are too small for the model.

    Attributes
    ----------
    node : str or None
        Name of the node that is too large, where it is one alone.
    """

    def __init__(self, message: str, node: str | None = None) -> None:
        self.node = node
        super().__init__(message)
