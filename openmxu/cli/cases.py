"""Programs to measure: with inputs, and the results that a numpy model says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import openmxu
from openmxu.arch import Config
from openmxu.cli.networks import ExampleNetwork
from openmxu.program import Program

if TYPE_CHECKING:
    from openmxu.compiler.ir.network import Network

__all__ = ["Case", "example_case", "layer_case"]


@dataclass(frozen=True)
class Case:
    """A program, its inputs, and its results by name."""

    program: Program
    inputs: NDArray[Any] | Mapping[str, NDArray[Any]]
    expected: Mapping[str, NDArray[Any]]

    def mismatches(self, results: Mapping[str, NDArray[Any]]) -> int:
        """The numbers of the results that are not those expected."""
        return sum(int(np.count_nonzero(array != self.expected[name])) for name, array in results.items())


def layer_case(network: Network, values: NDArray[np.uint8], config: Config, **planning: Any) -> Case:
    """A network of one input and one output.

    Parameters
    ----------
    planning
        ``effort``, ``host_rate`` and ``weight_rate``, as of :func:`openmxu.compile`.

    Raises
    ------
    openmxu.CompileError
        It cannot be compiled.
    """
    from openmxu.compiler import compile_network, evaluate

    program, result = compile_network(network, config, **planning), evaluate(network, values)
    assert not isinstance(result, dict), "there is one output"
    return Case(program, values, {network.outputs[0].host.name: result})


def example_case(example: ExampleNetwork, config: Config, batch: int, seed: int = 0, **planning: Any) -> Case:
    """An example network with a batch of its inputs; ``planning`` is as of :func:`layer_case`.

    Raises
    ------
    openmxu.CompileError
        It cannot be compiled.
    """
    from openmxu.compiler import import_model

    model, inputs = example.model(), example.inputs(batch, seed)
    program = openmxu.compile(model, config, batch=batch, **planning)
    imported = import_model(model)
    given = inputs if isinstance(inputs, Mapping) else {imported.inputs[0].name: inputs}
    return Case(program, given, imported.evaluate(given))
