"""The device of a server: opened when it is needed, and clear before each client."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

from openmxu.arch.config import Config
from openmxu.arch.errors import OpenmxuError
from openmxu.device import Device, DeviceError

__all__ = ["LentDevice"]

_logger = logging.getLogger(__name__)


class LentDevice:
    """A device that one client after the other uses. It is opened at once.

    Parameters
    ----------
    open_it
        Opens the device.

    Raises
    ------
    DeviceError
        It cannot be opened.
    """

    def __init__(self, open_it: Callable[[], Device]) -> None:
        self._open = open_it
        self._device: Device | None = open_it()
        self._is_clear = False
        self.config: Config = self._device.config

    def take(self) -> Device:
        """The device, with nothing of another client in it.

        Raises
        ------
        DeviceError
            It cannot be cleared, and opening it again does not help.
        """
        if self._device is not None and not self._is_clear:
            self.clear()
        if self._device is None:
            try:
                self._device = self._open()
            except (OpenmxuError, OSError) as error:
                raise DeviceError(f"the device cannot be opened again: {error}") from None
            if self._device.config != self.config:
                found, self._device = self._device, None
                found.close()
                raise DeviceError(f"the device has become another one: {found.config}, not {self.config}")
            self.clear()
        if self._device is None:
            raise DeviceError("the device cannot be cleared of the data of the client before")
        self._is_clear = False
        return self._device

    def clear(self) -> None:
        """Remove everything that a client has left; a device that fails meanwhile is closed."""
        if self._device is None or self._is_clear:
            return
        try:
            self._device.unload()
            self._device.scrub()
            self._device.reset()
            self._device.clear_counters()
            self._is_clear = True
        except Exception as error:
            _logger.warning("the device fails while it is cleared, and is opened again for the next client: %s", error)
            self.close()

    def close(self) -> None:
        """Close the device."""
        device, self._device, self._is_clear = self._device, None, False
        if device is not None:
            with suppress(DeviceError, OSError):
                device.close()
