"""Networks, and models of several, to programs."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

import numpy as np

from openmxu.arch.collection import paused_collection
from openmxu.arch.config import Config
from openmxu.compiler.errors import CapacityError
from openmxu.compiler.ir.fusion import fuse
from openmxu.compiler.ir.model import Model
from openmxu.compiler.ir.network import Network
from openmxu.compiler.plan.network_plan import Base, CompiledNetwork, compile_planes
from openmxu.compiler.plan.planned_network import PlannedNetwork
from openmxu.compiler.profile import check_profile
from openmxu.compiler.recurrent.cell import Recurrent
from openmxu.compiler.target import Target
from openmxu.program import Program
from openmxu.segments.device_segment import DeviceSegment
from openmxu.segments.host_segment import HostSegment
from openmxu.sim.memory_rate import Rate

__all__ = ["DEFAULT_ROWS", "compile_model", "compile_network"]

_logger = logging.getLogger(__name__)

_MOST_ELEMENTS = 1 << 20
"""Batch elements of one execution."""

DEFAULT_ROWS = 64
"""Rows of one execution where neither the model nor the caller says how many batch elements it computes."""


def compile_network(
    network: Network,
    config: Config,
    batch: int | None = None,
    effort: int = 1,
    *,
    host_rate: Rate = None,
    weight_rate: Rate = None,
) -> Program:
    """Compile a network.

    Parameters
    ----------
    network
        Operations in an order in which they can be done.
    config
        The configuration to run on.
    batch
        Batch elements of one execution; where it is ``None`` the network's own, or else as many as together have
        :data:`DEFAULT_ROWS` rows: one image, or 64 elements of a row or a sequence.
    effort, host_rate, weight_rate
        As of :func:`openmxu.compiler.compile`.

    Raises
    ------
    CapacityError
        The configuration's memories are too small.
    ProfileError
        The network needs what cores of the configuration's profile do not have.
    TypeError, ValueError
        The batch is no positive int, the effort no int from 0 on, or a rate no positive int or Fraction.
    """
    return compile_model(Model.of(network), Target.of(config, host_rate, weight_rate), batch, effort)


@paused_collection()
def compile_model(model: Model, target: Target, batch: int | None = None, effort: int = 1) -> Program:
    """Compile a model for a core and its memories; other parameters and errors as those of :func:`compile_network`."""
    start = time.perf_counter()
    networks = [fuse(network, target) for network in model.networks]
    if batch is None:
        batch = networks[0].batch or _default_batch(networks)
    if not isinstance(batch, int) or isinstance(batch, bool):
        raise TypeError(f"batch must be an int, not {batch!r}")
    if batch < 1:
        raise ValueError(f"batch must be at least 1, not {batch}")
    if not isinstance(effort, int) or isinstance(effort, bool):
        raise TypeError(f"effort must be an int, not {effort!r}")
    if effort < 0:
        raise ValueError(f"effort must be at least 0, not {effort}")
    if batch > _MOST_ELEMENTS:
        raise CapacityError(
            f"a batch of {batch:,} is too large for one execution; at most {_MOST_ELEMENTS:,} are possible"
        )
    # All of them are planned before the first is compiled, which takes long: one that does not fit is found at once.
    plans = [
        PlannedNetwork.of(
            network,
            target,
            min(network.batch or 1, _default_batch([network])) if network.is_whole else batch,
        )
        for network in networks
    ]
    planned = time.perf_counter()
    _logger.debug("planned %d segments of the device in %.2f s", len(plans), planned - start)
    parts: list[CompiledNetwork] = []
    base = Base()
    for plan in plans:
        parts.append(compile_planes(plan, target, base, effort))
        base = parts[-1].base
    is_whole = any(network.is_whole for network in networks)
    waiting = iter(parts)
    segments: list[HostSegment | DeviceSegment] = [
        segment if isinstance(segment, HostSegment) else next(waiting).segment for segment in model.segments
    ]
    program = Program(
        config=target.config,
        batch=1 if is_whole else batch,
        inputs=model.inputs,
        outputs=model.outputs,
        segments=tuple(segments),
        instructions=tuple(instruction for part in parts for instruction in part.instructions),
        weights=np.concatenate([part.weights for part in parts]),
        constants=np.concatenate([part.constants for part in parts]),
        host_bytes=base.host_bytes,
        multiply_adds=sum(_multiply_adds(part) for part in parts),
        layers=tuple(layer for part in parts for layer in part.layers),
        layer_numbers=np.concatenate([part.layer_numbers for part in parts]),
        states=tuple(state for part in parts for state in part.states),
        by_element=model.by_element,
    )
    check_profile(program)
    _logger.debug("chose a schedule and emitted instructions in %.2f s", time.perf_counter() - planned)
    _logger.info(
        "compiled %d layers for S = %d, batch %d: %d instructions, %d bytes of weights, in %.2f s",
        *(len(program.layers), target.size, program.batch, len(program.instructions), len(program.weights)),
        time.perf_counter() - start,
    )
    return program


def _multiply_adds(part: CompiledNetwork) -> int:
    """Of one execution of the program, in which a segment may be executed several times."""
    segment = part.segment
    return part.multiply_adds // segment.batch * (segment.batch if segment.elements is None else segment.elements)


def _default_batch(networks: Sequence[Network]) -> int:
    """One image; of recurrent cells, whose steps have a row of each element, many sequences; or enough rows."""
    tensors = [tensor for network in networks for tensor in network.tensors.values()]
    if any(tensor.width > 1 for tensor in tensors):
        return 1
    if any(isinstance(operation, Recurrent) for network in networks for operation in network.operations):
        return DEFAULT_ROWS
    return max(1, DEFAULT_ROWS // max(tensor.height for tensor in tensors))
