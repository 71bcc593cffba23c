"""The measurement of points: a network is compiled for a configuration, and the cycle model predicts its cycles."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from openmxu.arch import Config
from openmxu.arch.errors import OpenmxuError

if TYPE_CHECKING:
    from openmxu.program import Program

__all__ = ["Group", "Memory", "Model", "Product", "measure"]


@dataclass(frozen=True)
class Product:
    """A product of random matrices, M × K by K × N."""

    m: int
    k: int
    n: int

    @property
    def digest(self) -> str:
        """A text that differs from network to network."""
        return f"{self.m}x{self.k}x{self.n}"

    def program(self, config: Config, batch: int | None, effort: int) -> Program:
        """Compiled; the batch is M."""
        from openmxu.compiler import compile_network, gemm_network

        return compile_network(gemm_network(self.m, self.k, self.n), config, effort=effort)


@dataclass(frozen=True)
class Model:
    """A quantized ONNX model.

    Attributes
    ----------
    contents
        Of its file.
    """

    contents: bytes

    @property
    def digest(self) -> str:
        """A text that differs from network to network."""
        return hashlib.sha256(self.contents).hexdigest()

    def program(self, config: Config, batch: int | None, effort: int) -> Program:
        """Compiled for a batch."""
        import openmxu

        return openmxu.compile(self.contents, config, batch=batch, effort=effort)


@dataclass(frozen=True)
class Memory:
    """Latency in cycles, and rates as the texts of fractions in bytes per cycle; ``None`` for a beat in every cycle."""

    latency: int
    host_rate: str | None
    weight_rate: str | None

    def as_arguments(self) -> dict[str, Any]:
        """Those of :func:`openmxu.report`."""
        rates = {"host_rate": self.host_rate, "weight_rate": self.weight_rate}
        fractions = {name: None if rate is None else Fraction(rate) for name, rate in rates.items()}
        return {"memory_latency": self.latency, **fractions}


@dataclass(frozen=True)
class Group:
    """Points that need one program: they differ in their memories alone."""

    network: str
    batch: int | None
    effort: int
    config: Config
    memories: tuple[Memory, ...]


def measure(networks: Mapping[str, Product | Model], group: Group) -> list[dict[str, Any]]:
    """The results of a group, in the order of its memories: numbers by the name of their column, or ``error``.

    Whatever goes wrong with a point becomes its ``error``, so that the other points of a sweep remain.
    """
    from openmxu.compiler import CompileError
    from openmxu.reporting import total_reports
    from openmxu.sim.cycle_model import check_predicted

    try:
        check_predicted(group.config)
        program = networks[group.network].program(group.config, group.batch, group.effort)
        if not program.device_segments:
            raise CompileError("the host would compute all of it")
        reports = total_reports(program, [memory.as_arguments() for memory in group.memories])
    except Exception as error:
        text = str(error) if isinstance(error, OpenmxuError) else f"{type(error).__name__}: {error}"
        return [{"error": " ".join(text.split())}] * len(group.memories)
    return [
        {
            "batch": program.batch,
            "cycles": total.cycles,
            "utilization": total.utilization,
            "bound": total.bound,
            "bound_ratio": total.bound_ratio,
            "limit": total.limit,
            "multiply_adds": total.multiply_adds,
            "host_read_bytes": total.host_read_bytes,
            "host_write_bytes": total.host_write_bytes,
            "weight_bytes": total.weight_bytes,
            "instructions": total.instructions,
        }
        for total in reports
    ]
