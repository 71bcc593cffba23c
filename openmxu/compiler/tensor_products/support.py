"""Whether a core can multiply two tensors as they lie."""

from __future__ import annotations

from openmxu.arch.config import Config
from openmxu.arch.isa import Opcode
from openmxu.compiler.errors import CapacityError
from openmxu.compiler.ir.network import Network
from openmxu.compiler.ir.operations import Convolution
from openmxu.compiler.tensor_products.product import TensorProduct

__all__ = ["check_products", "filled_inputs"]


def check_products(network: Network, config: Config) -> None:
    """Check that all products of a network can be done.

    Raises
    ------
    CapacityError
        One cannot; its node is named.
    """
    for operation in network.operations:
        if isinstance(operation, TensorProduct):
            reason = _obstacle(operation, network, config)
            if reason:
                raise CapacityError(f"node {operation.name!r}: {reason}", operation.name)


def filled_inputs(network: Network, size: int) -> dict[str, int]:
    """Inputs of the network whose unused lanes must hold a certain integer, which stands for zero, by tensor."""
    inputs = {port.tensor for port in network.inputs}
    return {
        operation.sources[0]: operation.zero_points[0]
        for operation in network.operations
        if isinstance(operation, TensorProduct) and operation.inner % size and operation.sources[0] in inputs
    }


def _obstacle(operation: TensorProduct, network: Network, config: Config) -> str:
    """What is in the way; empty if nothing."""
    if not config.features.has(Opcode.LOAD_WEIGHTS):
        return (
            f"products of two activations need Load_Weights, which a core of the {config.profile} profile does not "
            "have; the full profile has it"
        )
    size = config.size
    right = operation.inner if operation.transposed else operation.columns
    for matrices, columns in (
        (operation.left, operation.inner),
        (operation.right, right),
        (operation.made, operation.columns),
    ):
        if not matrices.fits_planes(columns, size):
            return f"its matrices of {columns} columns share planes of {size} channels"
    name = operation.sources[0]
    if operation.inner % size == 0:
        return ""
    is_last = all(first + operation.inner == network.tensors[name].channels for first in operation.left.channels)
    if is_last and (name in filled_inputs(network, size) or _is_zero_behind(operation, network)):
        return ""
    return f"nothing makes the lanes behind {operation.inner} channels zero"


def _is_zero_behind(operation: TensorProduct, network: Network) -> bool:
    """Whether what makes the left tensor makes its unused lanes zero."""
    maker = next((other for other in network.operations if other.target == operation.sources[0]), None)
    if not isinstance(maker, Convolution) or maker.result is None or maker.result.table is not None:
        return False
    zero_point = operation.zero_points[0]
    limits = range(maker.result.minimum, maker.result.maximum + 1)
    return maker.result.zero_point == zero_point and zero_point in limits
