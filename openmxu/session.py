"""Executions of one program that keep its states on the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openmxu.device import Device
from openmxu.state import read_states, write_states

if TYPE_CHECKING:
    from openmxu.program import Program

__all__ = ["Session"]


class Session:
    """A program and a device that keeps its states: each :meth:`run` continues from the states of the one before.

    The program is loaded when the session begins. States lie in the unified buffer. To run another program on the
    device in between, save them with :meth:`states` and restore them with :meth:`reset`; the next :meth:`run` loads the
    session's program again.

    Parameters
    ----------
    program
        A program compiled with ``states``.
    device
        A device with the program's configuration.

    Raises
    ------
    openmxu.program.InputError
        The device has another configuration.
    ValueError
        The program has no states.
    """

    def __init__(self, program: Program, device: Device) -> None:
        if not program.states:
            raise ValueError("the program keeps no state; openmxu.compile makes one that does if it is given states")
        device.load(program)
        self._program = program
        self._device = device
        self.reset()

    def reset(self, values: Mapping[str, NDArray[np.float32]] | None = None) -> None:
        """Set the states, to 0 or to given values.

        Parameters
        ----------
        values
            States by the name of the input that they replace, with that input's shape and the program's batch; states
            that are not given become 0.

        Raises
        ------
        openmxu.program.InputError
            A value does not fit.
        """
        write_states(self._device, self._program.states, self._program.check_states(values or {}))

    def states(self) -> dict[str, NDArray[np.float32]]:
        """All current states, with the shapes of the inputs that they replace."""
        found = read_states(self._device, self._program.states)
        specs = {state.tensor.name: state.tensor.spec for state in self._program.states}
        return {name: np.moveaxis(array, 0, specs[name].batch_axis) for name, array in found.items()}

    def run(self, inputs: NDArray[Any] | Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Compute the outputs of the next inputs, of at most the program's batch; see :meth:`Device.run`."""
        self._device.load(self._program)
        return self._device.run(inputs, keep_states=True)
