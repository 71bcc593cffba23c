"""Families of random models for the exactness campaign, each with the allowed difference of outputs."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from scripts.random_models.affine import affine, normalize
from scripts.random_models.convolution import FORMS, convolve, sum_products
from scripts.random_models.dense import LARGEST, OPERATORS, dense_case
from scripts.random_models.elementwise import combine
from scripts.random_models.functions import FUNCTIONS, OTHER_FUNCTIONS, apply_function, clip, relu
from scripts.random_models.graph import OPSETS, Case, Graph, Tensor
from scripts.random_models.movement import MOVEMENTS, move, moves
from scripts.random_models.network import chain
from scripts.random_models.pooling import average_pool, global_average_pool, global_max_pool, max_pool, reduce_mean
from scripts.random_models.shapes import log_uniform, random_shape
from scripts.random_models.words import WORD_OPERATORS, word_case

__all__ = ["FAMILIES", "Family"]


@dataclass(frozen=True)
class Family:
    """Random models of one operator.

    Attributes
    ----------
    tolerance
        Largest allowed difference of outputs.
    make
        Makes a case from a random generator, the number of the model in its family, and whether to vary the opset, the
        batch and the form of padding, too.
    """

    name: str
    tolerance: int
    make: Callable[[np.random.Generator, int, bool], Case]

    def case(self, seed: int, number: int, varies: bool = False) -> Case:
        """Model ``number`` of those with ``seed``; the same one every time."""
        return self.make(np.random.default_rng((seed, zlib.crc32(self.name.encode()), number)), number, varies)


def _dense(operator: str) -> Family:
    def make(random: np.random.Generator, number: int, varies: bool) -> Case:
        m, k, n = (log_uniform(random, LARGEST) for _ in range(3))
        return dense_case(random, operator, (m, k, n), int(random.choice(OPSETS)) if varies else 21)

    return Family(operator, 0, make)


def _words(operator: str) -> Family:
    def make(random: np.random.Generator, number: int, varies: bool) -> Case:
        return word_case(random, operator)

    return Family(f"{operator} of int16", 1, make)


def _layers(
    name: str,
    tolerance: int,
    build: Callable[[Graph], Tensor],
    powers_of_two: bool | None = None,
    oldest: int = 13,
    always_varies: bool = False,
    **shape: int,
) -> Family:
    """A family of graphs.

    ``powers_of_two`` says whether scales are powers of two, ``None`` in a quarter of the graphs; ``oldest`` is the
    first opset in which their operators have this meaning; ``shape`` goes to :func:`random_shape`.
    """

    def make(random: np.random.Generator, number: int, varies: bool) -> Case:
        # 512 models cover every zero point of both types.
        dtype = ("uint8", "int8")[number // 256 % 2]
        powers = bool(random.random() < 0.25) if powers_of_two is None else powers_of_two
        graph = Graph(random, random_shape(random, **shape), dtype, number * 101 % 256, powers)
        if varies or always_varies:
            graph.vary(oldest)
        return graph.case(build(graph))

    return Family(name, tolerance, make)


def _source(graph: Graph) -> Tensor:
    """The input, or a convolution of it."""
    return graph.input if graph.chance(0.5) else convolve(graph, graph.input, FORMS[graph.between(0, 1)])


def _other_function(graph: Graph) -> Tensor:
    return apply_function(graph, _source(graph), OTHER_FUNCTIONS[graph.between(0, len(OTHER_FUNCTIONS) - 1)])


_OLDEST = {"HardSwish": 14, "ReduceMean": 18, "Relu": 14}
"""The opsets in which some operators appeared, or first took int8, or constants as inputs."""


_APPROXIMATE: dict[str, tuple[Callable[[Graph], Tensor], int]] = {
    "Add": (lambda graph: combine(graph, "Add"), 2),
    "Mul": (lambda graph: combine(graph, "Mul"), 2),
    "Sub": (lambda graph: combine(graph, "Sub"), 2),
    "BatchNormalization": (lambda graph: normalize(graph, graph.input), 2),
    "Add, Sub, Mul, Div of constants": (lambda graph: affine(graph, graph.input), 2),
    "ReduceMean": (lambda graph: reduce_mean(graph, _source(graph)), 8),
    "AveragePool": (lambda graph: average_pool(graph, _source(graph)), 2),
    "GlobalAveragePool": (lambda graph: global_average_pool(graph, _source(graph)), 8),  # few outputs a plane
}


def _families() -> list[Family]:
    families = [_dense(operator) for operator in OPERATORS]
    families += [_layers(form, 0, lambda graph, form=form: convolve(graph, graph.input, form)) for form in FORMS]
    families.append(_layers("ConvInteger", 0, sum_products))
    families.append(_layers("MaxPool", 0, lambda graph: max_pool(graph, _source(graph))))
    families.append(_layers("GlobalMaxPool", 0, lambda graph: global_max_pool(graph, _source(graph)), batch=16))
    families.append(_layers("Relu", 0, relu, oldest=14))
    families.append(_layers("Clip", 0, clip))
    families += [
        _layers(
            name, 0, lambda graph, name=name: apply_function(graph, _source(graph), name), oldest=_OLDEST.get(name, 13)
        )
        for name in FUNCTIONS
    ]
    families += [
        _layers(name, 0, lambda graph, name=name: moves(graph, move(graph, _source(graph), name)), always_varies=True)
        for name in MOVEMENTS
    ]
    families.append(_layers("chains", 0, chain, oldest=14, smallest=400))
    families.append(_layers("other functions", 1, _other_function, oldest=20))
    for powers_of_two in (False, True):
        suffix = ", powers of two" if powers_of_two else ""
        families += [
            _layers(f"{name}{suffix}", 1, build, powers_of_two, _OLDEST.get(name, 13), batch=batch)
            for name, (build, batch) in _APPROXIMATE.items()
        ]
    families += [_words(operator) for operator in WORD_OPERATORS]
    return families


FAMILIES = {family.name: family for family in _families()}
"""All families by name."""
