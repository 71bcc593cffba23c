"""The core of each profile."""

from amaranth.lib import wiring

from openmxu.arch.config import Config
from openmxu.rtl.core import Core
from openmxu.rtl.lite.core import LiteCore

__all__ = ["core_for"]


def core_for(config: Config) -> wiring.Component:
    """A core of the configuration's profile, with a :class:`~openmxu.rtl.common.interfaces.CoreSignature`."""
    return LiteCore(config) if config.features.is_sequential else Core(config)
