"""Networks to programs."""

from __future__ import annotations

from openmxu.arch.config import Config
from openmxu.compiler.ir.fusion import fuse
from openmxu.compiler.ir.network import Network
from openmxu.compiler.plan.network_plan import compile_planes
from openmxu.compiler.profile import check_profile
from openmxu.program import Program

__all__ = ["DEFAULT_ROWS", "compile_network"]

DEFAULT_ROWS = 64
"""Batch elements of one execution where neither the model nor the caller says and an element is a single row; one
execution computes one element where it is an image."""


def compile_network(network: Network, config: Config, batch: int | None = None) -> Program:
    """Compile a network.

    Parameters
    ----------
    network
        Operations in an order in which they can be done.
    config
        The configuration to run on.
    batch
        Batch elements of one execution; the network's own where it is ``None``, or else :data:`DEFAULT_ROWS` or one.

    Raises
    ------
    CapacityError
        The configuration's memories are too small.
    ProfileError
        The network needs what cores of the configuration's profile do not have.
    TypeError, ValueError
        The batch is no positive int.
    """
    network = fuse(network, config)
    if batch is None:
        is_image = any(tensor.width > 1 for tensor in network.tensors.values())
        batch = network.batch or (1 if is_image else DEFAULT_ROWS)
    if not isinstance(batch, int) or isinstance(batch, bool):
        raise TypeError(f"batch must be an int, not {batch!r}")
    if batch < 1:
        raise ValueError(f"batch must be at least 1, not {batch}")
    program = compile_planes(network, config, batch)
    check_profile(program)
    return program
