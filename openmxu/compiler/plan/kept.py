"""Where states lie in the unified buffer: in front of everything that comes and goes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from openmxu.arch.config import Config
from openmxu.compiler.errors import CapacityError
from openmxu.compiler.ir.network import Network
from openmxu.compiler.recurrent.cell import Recurrent
from openmxu.compiler.recurrent.layout import Layout, kept_rows
from openmxu.state import State

__all__ = ["KeptRows"]


@dataclass(frozen=True)
class KeptRows:
    """First rows of kept values by number of the operation and name; ``end`` is the first row behind all of them."""

    places: Mapping[int, Mapping[str, int]]
    end: int

    @classmethod
    def of(cls, network: Network, batch: int, first: int, config: Config) -> KeptRows:
        """Places from row ``first`` on.

        Raises
        ------
        CapacityError
            Nothing is left for anything else.
        """
        places: dict[int, dict[str, int]] = {}
        end = first
        for index, operation in enumerate(network.operations):
            if isinstance(operation, Recurrent):
                places[index] = {}
                for name, rows in kept_rows(operation, batch, config.size).items():
                    places[index][name] = end
                    end += rows
        if end > first and end >= config.unified_buffer_rows:
            raise CapacityError(
                f"unified_buffer_rows is {config.unified_buffer_rows}, "
                f"but the states of a batch of {batch} alone need {end - first}"
            )
        return cls(places, end)

    def states(self, network: Network, layouts: Mapping[int, Layout], size: int) -> tuple[State, ...]:
        """What a program says of them; ``layouts`` by number of the operation."""
        states = []
        offset = 0
        for index, places in self.places.items():
            for name, row in places.items():
                kept, parts = network.operations[index].kept[name], layouts[index].parts
                tensor = dataclasses.replace(kept.host, offset=offset)
                states.append(State(tensor, kept.output, row, tuple(map(len, parts))))
                offset += tensor.extent(layouts[index].images, size)
        return tuple(states)
