"""Random host transfers, and their effects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from openmxu.rtl.dispatch.commands import host_command, write_command
from tb.bench import CONFIG
from tb.models.payloads import pack

__all__ = ["Transfer", "random_transfers"]


@dataclass(frozen=True)
class Transfer:
    """A transfer between host memory and the unified buffer; if ``to_weights``, one of rows to the weight FIFO."""

    host: int
    unified_buffer: int
    rows: int
    alternate: int
    stride: int
    to_weights: int = 0

    @property
    def payload(self) -> int:
        """The command as a payload."""
        return pack(host_command(CONFIG), {name: vars(self)[name] for name in host_command(CONFIG).members})

    @property
    def write_payload(self) -> int:
        """The command of the host writer as a payload."""
        return pack(write_command(CONFIG), {name: vars(self)[name] for name in write_command(CONFIG).members})

    @property
    def distance(self) -> int:
        """Distance in bytes between rows in host memory."""
        return self.stride if self.alternate else CONFIG.size

    @property
    def addresses(self) -> list[int]:
        """Host address of every row."""
        return [self.host + row * self.distance for row in range(self.rows)]

    @property
    def bursts(self) -> list[tuple[int, int]]:
        """Address and beats of its bursts: one, or one for each row of an alternate transfer."""
        beat = CONFIG.host_data_bytes
        parts = self.addresses if self.alternate else self.addresses[:1]
        length = CONFIG.size if self.alternate else CONFIG.size * self.rows
        starts = [(address // beat * beat, address) for address in parts]
        return [(start, -(-(address + length - start) // beat)) for start, address in starts]


def random_transfers(
    rng: np.random.Generator, count: int, memory: NDArray[np.uint8], alternate_share: float = 0.5
) -> list[Transfer]:
    """Transfers within host memory and unified buffer, some of them alternate ones."""
    transfers = []
    unit, size = CONFIG.host_alignment, CONFIG.size
    while len(transfers) < count:
        alternate = int(rng.random() < alternate_share)
        rows = int(rng.choice([1, 2, 3, int(rng.integers(1, 20))]))
        stride = int(rng.integers(0, 5)) * unit if rng.random() < 0.5 else int(rng.integers(0, 40)) * unit
        extent = (rows - 1) * (stride if alternate else size) + size
        if extent > memory.size:
            continue
        host = int(rng.integers(0, (memory.size - extent) // unit + 1)) * unit
        unified_buffer = int(rng.integers(0, CONFIG.unified_buffer_rows - rows + 1))
        transfers.append(Transfer(host, unified_buffer, rows, alternate, stride))
    return transfers
