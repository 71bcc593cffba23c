"""The core as a module of a LiteX system on a chip."""

from importlib.util import find_spec

from openmxu.litex.errors import LiteXMissingError
from openmxu.litex.options import add_openmxu_arguments, openmxu_config

for _package in ("migen", "litex", "litedram"):
    if find_spec(_package) is None:
        raise LiteXMissingError(_package)

from openmxu.litex.module import OpenMXU  # noqa: E402
from openmxu.litex.system import add_openmxu  # noqa: E402

__all__ = ["LiteXMissingError", "OpenMXU", "add_openmxu", "add_openmxu_arguments", "openmxu_config"]
