"""The core as a module of a LiteX system on a chip."""

from openmxu.litex.errors import LiteXMissingError
from openmxu.litex.options import add_openmxu_arguments, openmxu_config

try:
    import litedram
    import litex
    import migen  # noqa: F401
except ImportError as error:
    raise LiteXMissingError(error.name or "litex") from None

from openmxu.litex.module import OpenMXU
from openmxu.litex.system import add_openmxu

__all__ = ["LiteXMissingError", "OpenMXU", "add_openmxu", "add_openmxu_arguments", "openmxu_config"]
