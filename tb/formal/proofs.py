"""The list of all proofs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tb.formal.axi.ports import ReadsPort, RegistersPort, WritesPort
from tb.formal.bursts import Splitting
from tb.formal.control import Accesses, Fetching, RegisterAnswers
from tb.formal.managers import Reading, Writing, WritingInOrder
from tb.formal.multipliers import (
    Ecp5LogicProduct,
    Ecp5Product,
    Ice40PartialSums,
    Ice40Products,
    LogicProduct,
    PortableProduct,
)
from tb.formal.proof import Proof
from tb.formal.scoreboard import Soundness
from tb.formal.streams import BufferedContract, FifoContract, FifoOrder, SliceContract
from tb.formal.windows import BurstsOfTransfers, LegalAccesses, TilesOfWeights

__all__ = ["PROOFS"]

PROOFS: tuple[Callable[[], Proof], ...] = (
    *(partial(FifoContract, depth) for depth in (1, 2, 5)),
    *(partial(FifoOrder, depth) for depth in (1, 2, 5)),
    partial(FifoOrder, 5, always_ready=True),
    *(partial(BufferedContract, depth) for depth in (2, 5)),
    SliceContract,
    *(partial(Splitting, data_bytes) for data_bytes in (4, 8, 64)),
    Reading,
    Writing,
    WritingInOrder,
    Accesses,
    RegisterAnswers,
    LegalAccesses,
    BurstsOfTransfers,
    TilesOfWeights,
    Soundness,
    *(partial(Fetching, data_bytes) for data_bytes in (4, 16, 64)),
    PortableProduct,
    Ecp5Product,
    LogicProduct,
    Ecp5LogicProduct,
    Ice40Products,
    Ice40PartialSums,
    RegistersPort,
    partial(ReadsPort, is_host=False),
    partial(ReadsPort, is_host=True),
    WritesPort,
)
"""Functions without parameters that make the proofs."""
