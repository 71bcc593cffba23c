"""AXI channels as streams; the fields of a payload have the names of the channel's signals, without its prefix."""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.rtl.shell.interfaces import REGISTER_WIDTH

__all__ = [
    "LiteSignature",
    "ReadChannelsSignature",
    "WriteChannelsSignature",
    "address_layout",
    "read_data_layout",
    "response_layout",
    "write_data_layout",
]


def address_layout(address_width: int) -> data.StructLayout:
    """A burst of ``len`` + 1 whole beats from ``addr`` on."""
    return data.StructLayout({"addr": address_width, "len": 8})


def read_data_layout(data_bytes: int) -> data.StructLayout:
    """A beat of read data; ``resp`` 2 and 3 are errors."""
    return data.StructLayout({"data": 8 * data_bytes, "resp": 2, "last": 1})


def write_data_layout(data_bytes: int) -> data.StructLayout:
    """A beat of written data, with one strobe bit for each byte."""
    return data.StructLayout({"data": 8 * data_bytes, "strb": data_bytes, "last": 1})


def response_layout() -> data.StructLayout:
    """The reply to a written burst; ``resp`` 2 and 3 are errors."""
    return data.StructLayout({"resp": 2})


class ReadChannelsSignature(wiring.Signature):
    """The read channels of AXI4, seen from the manager. Bursts are INCR, of whole beats, with one ID.

    Members
    -------
    ar
        Bursts.
    r
        Their beats, in order.
    """

    def __init__(self, address_width: int, data_bytes: int) -> None:
        super().__init__(
            {
                "ar": Out(stream.Signature(address_layout(address_width))),
                "r": In(stream.Signature(read_data_layout(data_bytes))),
            }
        )


class WriteChannelsSignature(wiring.Signature):
    """The write channels of AXI4, seen from the manager. Bursts are INCR, of whole beats, with one ID.

    Members
    -------
    aw
        Bursts.
    w
        Their beats, in order.
    b
        One reply for each burst, in order.
    """

    def __init__(self, address_width: int, data_bytes: int) -> None:
        super().__init__(
            {
                "aw": Out(stream.Signature(address_layout(address_width))),
                "w": Out(stream.Signature(write_data_layout(data_bytes))),
                "b": In(stream.Signature(response_layout())),
            }
        )


class LiteSignature(wiring.Signature):
    """AXI4-Lite with 32 data bits, seen from the manager.

    Members
    -------
    aw, w, b
        Writes: address, data, reply.
    ar, r
        Reads: address, data with reply.
    """

    def __init__(self, address_width: int) -> None:
        address = data.StructLayout({"addr": address_width})
        word = REGISTER_WIDTH
        super().__init__(
            {
                "aw": Out(stream.Signature(address)),
                "w": Out(stream.Signature(data.StructLayout({"data": word, "strb": word // 8}))),
                "b": In(stream.Signature(response_layout())),
                "ar": Out(stream.Signature(address)),
                "r": In(stream.Signature(data.StructLayout({"data": word, "resp": 2}))),
            }
        )
