"""What is decided about a network before a program is made of it: all that a memory can be too small for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.arch.effects import PARAMETER_ROWS, table_rows
from openmxu.compiler.emit.constants import Constants
from openmxu.compiler.emit.memory import check_addresses
from openmxu.compiler.errors import CapacityError
from openmxu.compiler.ir.network import Network
from openmxu.compiler.ir.operations import Convolution
from openmxu.compiler.ir.permutation import Permutation, Selections
from openmxu.compiler.plan.fusion_groups import Group, plan_groups
from openmxu.compiler.plan.kept import KeptRows
from openmxu.compiler.plan.packing import pack_inputs
from openmxu.compiler.plan.staging import plan_staging
from openmxu.compiler.plan.weight_ports import WeightPorts
from openmxu.compiler.tensor_products.support import check_products
from openmxu.layer import Layer

__all__ = ["PlannedNetwork", "Staging"]

_MOST_ROWS = 1 << 23
"""Rows of S values of a tensor of one batch element, bytes of a value counted apart."""


@dataclass(frozen=True)
class Staging:
    """The unified buffer rows in front of all tensors: parameter sets, then a table, on their way into the hardware."""

    load_sets: int
    slots: int
    table: int
    rows: int

    @classmethod
    def of(cls, constants: Constants, config: Config) -> Staging:
        """The rows for the parameters and tables of a network."""
        load_sets, slots = plan_staging(constants.sets, config)
        table = load_sets * slots * PARAMETER_ROWS
        rows = table + (table_rows(config.size) if constants.tables else 0)
        if rows >= config.unified_buffer_rows:
            raise CapacityError(
                f"unified_buffer_rows is {config.unified_buffer_rows}, but parameters and tables alone need {rows}"
            )
        return cls(load_sets, slots, table, rows)


@dataclass(frozen=True)
class PlannedNetwork:
    """A network, cut to fit the memories of a configuration.

    Attributes
    ----------
    network, images
        The network as it is computed, and the batch that it is computed for: rows may have become images.
    batch, multiply_adds, layers
        Of the network as it was: its batch, and the work of one execution.
    constants
        From address 0 on.
    selections
        Of every permutation, by the number of the operation.
    original
        The network as it was.
    """

    network: Network
    images: int
    batch: int
    multiply_adds: int
    layers: tuple[Layer, ...]
    constants: Constants
    staging: Staging
    ports: WeightPorts
    kept: KeptRows
    groups: tuple[Group, ...]
    selections: Mapping[int, Selections]
    original: Network

    @classmethod
    def of(cls, network: Network, config: Config, batch: int) -> PlannedNetwork:
        """Plan a network.

        Raises
        ------
        CapacityError
            The configuration's memories are too small.
        """
        original = network
        multiply_adds, layers = batch * network.multiply_adds, network.layers(batch)
        # Before anything else: the largest tensors would take long.
        ports = {port.tensor: network.tensors[port.tensor] for port in (*network.inputs, *network.outputs)}
        least = sum(tensor.channels * tensor.positions * tensor.item for tensor in ports.values())
        check_addresses(batch * least, 0, config)
        _check_sizes(network, config)
        check_products(network, config)
        network, images = _rows_as_images(pack_inputs(network, config.size), batch)
        constants = Constants.of(network, config.size)
        staging = Staging.of(constants, config)
        ports = WeightPorts.of(network, images, staging.rows, config)
        kept = KeptRows.of(network, images, staging.rows + ports.ring.count, config)
        groups = plan_groups(network, images, kept.end, config)
        selections = {
            index: Selections(operation, network.tensors, config.size)
            for index, operation in enumerate(network.operations)
            if isinstance(operation, Permutation)
        }
        return cls(
            network,
            images,
            batch,
            multiply_adds,
            layers,
            constants,
            staging,
            ports,
            kept,
            groups,
            selections,
            original,
        )

    def replanned(self, config: Config) -> PlannedNetwork:
        """The plan for other memories; errors as those of :meth:`of`."""
        return PlannedNetwork.of(self.original, config, self.batch)


def _check_sizes(network: Network, config: Config) -> None:
    """Refuse operations on tensors that would take a program of hundreds of thousands of instructions to pass by."""
    for operation in network.operations:
        for name in (*operation.sources, *operation.targets):
            tensor = network.tensors[name]
            rows = -(-tensor.channels // config.size) * tensor.positions * tensor.item
            if rows > _MOST_ROWS:
                raise CapacityError(
                    f"node {operation.name!r}: a tensor of {rows:,} rows is too large; {_MOST_ROWS:,} are possible",
                    operation.name,
                )


def _rows_as_images(network: Network, batch: int) -> tuple[Network, int]:
    """A network of matrix products alone with each row as an image, and the number of images.

    Images are what strips and bands are cut into.
    """
    positions = {tensor.positions for tensor in network.tensors.values()}
    products = all(
        isinstance(operation, Convolution) and operation.window.is_point and operation.pooling is None
        for operation in network.operations
    )
    if not products or network.constants or len(positions) != 1:
        return network, batch
    tensors = {name: dataclasses.replace(tensor, height=1, width=1) for name, tensor in network.tensors.items()}
    return dataclasses.replace(network, tensors=tensors), batch * positions.pop()
