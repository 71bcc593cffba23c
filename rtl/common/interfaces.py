"""Signatures and payloads at the edges of the core."""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.arch.events import EventKind
from openmxu.arch.isa import WORD_BITS

__all__ = [
    "BEATS_WIDTH",
    "CoreSignature",
    "EventLayout",
    "ManagementRequest",
    "ReadPortSignature",
    "WritePortSignature",
    "burst_layout",
    "most_host_beats",
    "most_weight_beats",
    "write_beat_layout",
]

BEATS_WIDTH = 32
"""Bits of the number of beats of a burst."""


class EventLayout(data.Struct):
    """One event for the host: kind, fault code, tag, and the index of the instruction within its program."""

    kind: EventKind
    fault: 4
    tag: 32
    index: 32


class ManagementRequest(data.Struct):
    """A read or a write of a 64-bit management register; only reads are answered."""

    address: 8
    write: 1
    data: 64


def most_host_beats(config: Config) -> int:
    """Largest number of beats of a request for host memory: a unified buffer that begins within a beat."""
    return config.unified_buffer_rows * config.size // config.host_data_bytes + 1


def most_weight_beats(config: Config) -> int:
    """Largest number of beats of a request for weight memory: a tile."""
    return max(1, config.tile_bytes // config.weight_data_bytes)


def burst_layout(address_width: int) -> data.StructLayout:
    """A request for ``beats`` consecutive beats; ``address`` is a byte address, a multiple of the beat."""
    return data.StructLayout({"address": address_width, "beats": BEATS_WIDTH})


def write_beat_layout(data_bytes: int) -> data.StructLayout:
    """A beat with one strobe bit for each byte that is written; ``last`` marks the last beat of its request."""
    return data.StructLayout({"data": 8 * data_bytes, "strobe": data_bytes, "last": 1})


class ReadPortSignature(wiring.Signature):
    """A memory's read port, seen from the core.

    Members
    -------
    request
        Bursts, answered in order.
    data
        The beats of all bursts, lowest byte in the lowest bits.
    """

    def __init__(self, address_width: int, data_bytes: int) -> None:
        super().__init__(
            {
                "request": Out(stream.Signature(burst_layout(address_width))),
                "data": In(stream.Signature(8 * data_bytes)),
            }
        )


class WritePortSignature(wiring.Signature):
    """A memory's write port, seen from the core.

    Members
    -------
    request
        Bursts; the request of a burst may come before, with or after its data.
    data
        The beats of all bursts in the order of their requests.
    done
        One transfer for each burst, in order, once its bytes are visible to every later read.
    """

    def __init__(self, address_width: int, data_bytes: int) -> None:
        super().__init__(
            {
                "request": Out(stream.Signature(burst_layout(address_width))),
                "data": Out(stream.Signature(write_beat_layout(data_bytes))),
                "done": In(stream.Signature(1)),
            }
        )


class CoreSignature(wiring.Signature):
    """All ports of the core.

    Members
    -------
    instructions
        16-byte words, executed in order. While a fault is pending they are taken and dropped.
    host_read, host_write
        Host memory.
    weights
        Weight memory.
    events
        Messages to the host, see :class:`openmxu.arch.events.EventKind`.
    management, management_response
        Reads and writes of :class:`openmxu.arch.events.Management` registers; one response for each read.
    busy, finished, waiting, index
        For a watchdog: a unit works; an instruction has ended; a Host_Synchronize waits for the host; index of the
        instruction that dispatch has reached.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "instructions": In(stream.Signature(WORD_BITS)),
                "host_read": Out(ReadPortSignature(config.host_address_width, config.host_data_bytes)),
                "host_write": Out(WritePortSignature(config.host_address_width, config.host_data_bytes)),
                "weights": Out(ReadPortSignature(config.weight_address_width, config.weight_data_bytes)),
                "events": Out(stream.Signature(EventLayout)),
                "management": In(stream.Signature(ManagementRequest)),
                "management_response": Out(stream.Signature(64)),
                "busy": Out(1),
                "finished": Out(1),
                "waiting": Out(1),
                "index": Out(32),
            }
        )
