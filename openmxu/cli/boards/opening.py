"""Opening a board before a program is compiled for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from openmxu.arch import Config
from openmxu.cli.configuration import ConfigChoice
from openmxu.cli.errors import InputError
from openmxu.cli.options import DeviceAddress, DeviceName
from openmxu.cli.programs import open_device
from openmxu.device import Device

__all__ = ["board_configuration", "opened", "opened_board"]


@contextmanager
def opened_board(device: DeviceAddress, choice: ConfigChoice, **options: object) -> Iterator[Device | None]:
    """The board that the options choose; ``None`` for simulations, which are opened with a configuration.

    Raises
    ------
    InputError
        An option is not for boards, or contradicts the board's configuration.
    openmxu.device.DeviceError
        No board answers.
    """
    if not device.is_board:
        yield None
        return
    with open_device(device, None, **options) as board:
        place = device if device.name is DeviceName.GRPC else device.port or options.get("port")
        choice.check_board(board.config, str(place))
        yield board


def opened(
    board: Device | None, device: DeviceAddress, config: Config, **options: object
) -> AbstractContextManager[Device]:
    """The board of :func:`opened_board`, which stays open, or else the simulation that the options choose."""
    return open_device(device, config, **options) if board is None else nullcontext(board)


def board_configuration(device: DeviceAddress, choice: ConfigChoice, **options: object) -> Config:
    """The configuration that a board reports; raises as :func:`opened_board`."""
    if not device.is_board:
        raise InputError(
            f"--device {device} has no configuration of its own: give --size or --preset, or a board, as in "
            "--device serial:/dev/ttyUSB1"
        )
    with opened_board(device, choice, **options) as board:
        assert board is not None, "a board is open"
        return board.config
