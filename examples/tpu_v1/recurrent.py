"""LSTM0 and LSTM1: one step of stacked LSTM cells.

A gate is a dense layer of the cell's input and its last output side by side. What remains of a cell are five vector
layers: the cell state f · c + i · g, its hyperbolic tangent, and the product of that with o. States are inputs and
outputs, because the weights of a step are read anew in each step, however long the sequence is.

Weights are int8, states and everything that layers read int16, gates int8.
"""

from __future__ import annotations

from examples.tpu_v1.graph import Graph, Tensor, Workload

__all__ = ["lstm0", "lstm1"]

_UNITS = 1024
_FEATURES = 1536

_WIDTH = 600
_CELL_UNITS = 1600
_DENSE = 6
"""Dense layers in front of a cell."""


def lstm0() -> Workload:
    """Six cells of 1,024 units, as in the decoder of a translator: the first one reads an embedding of 512 features and
    a context of 1,024, and from the third one on a cell's input is added to its output."""
    graph = Graph(seed=2, dtype="int16")
    # The first cell's input has its last output behind it: the host writes both.
    both = graph.input("features_and_cell0_h", _FEATURES + _UNITS)
    source = _cell(graph, "cell0", both, _UNITS)
    for number in range(1, 6):
        result = _cell(graph, f"cell{number}", _with_state(graph, f"cell{number}", source, _UNITS), _UNITS)
        source = graph.add(result, source) if number >= 2 else result
    graph.output(source)
    return graph.workload("lstm0", 64)


def lstm1() -> Workload:
    """Three cells of 1,600 units with a projection to 600, and 22 dense layers of 600 × 600: six in front of each cell
    and four at the end. Cells and the last layer have their input added to their output."""
    graph = Graph(seed=3, dtype="int16")
    source = graph.input("features", _WIDTH)
    for number in range(3):
        for _ in range(_DENSE):
            source = graph.dense(source, _WIDTH)
        both = _with_state(graph, f"cell{number}", source, _WIDTH)
        result = graph.dense(_cell(graph, f"cell{number}", both, _CELL_UNITS), _WIDTH, "")
        graph.output(result)
        source = graph.add(result, source)
    for _ in range(3):
        source = graph.dense(source, _WIDTH)
    graph.output(graph.add(graph.dense(source, _WIDTH), source))
    return graph.workload("lstm1", 96)


def _with_state(graph: Graph, name: str, source: Tensor, features: int) -> Tensor:
    """A tensor with the last output of a cell behind it."""
    return graph.joined(source, graph.input(f"{name}_h", features))


def _cell(graph: Graph, name: str, both: Tensor, units: int) -> Tensor:
    """A cell of so many units, (units,), behind input and last output; its cell state is an output.

    The output gate comes last: the array works on it while the activation unit makes the cell state of the others.
    """
    state = graph.input(f"{name}_c", units)
    kept = graph.multiply(graph.dense(both, units, "Sigmoid"), state)
    i, g = graph.dense(both, units, "Sigmoid"), graph.dense(both, units, "Tanh")
    state = graph.add(kept, graph.multiply(i, g))
    squashed = graph.tanh(state)
    graph.output(state)
    return graph.multiply(graph.dense(both, units, "Sigmoid"), squashed)
