"""Amaranth components as Verilog text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from amaranth.back import verilog
from amaranth.hdl import Signal, Value
from amaranth.lib import wiring

from openmxu.rtl.fpga.target import Target

__all__ = ["to_verilog"]

_INDEXED = re.compile(r"\\\S*\[\S*")
"""An identifier with an index in it, which Verilog takes when a backslash is before it."""

_ANGLES = str.maketrans("[]", "<>")


def to_verilog(component: wiring.Component, name: str, target: Target | None = None) -> str:
    """The Verilog of ``component`` for ``target``, or for anything, with ``name`` as its top module.

    Ports are named after the members of the component's signature, joined by two underscores
    (``host_read__request__payload``); ``clk`` and ``rst`` (synchronous, active high) are added. Struct payloads are
    packed with their first field in the lowest bits. Members that are constant, like ``ready`` of a stream that is
    always ready, are no ports. Modules of submodules are named ``<name>.<submodule>``. A word of an array, which has a
    wire of its own, is ``words<0>``. The Yosys that comes with Amaranth writes the text, unless
    ``AMARANTH_USE_YOSYS`` says otherwise.
    """
    members = (Value.cast(value) for _, _, value in component.signature.flatten(component))
    ports = [value for value in members if isinstance(value, Signal)]
    with _builtin_yosys():
        text = verilog.convert(component, name=name, platform=target or Target(), ports=ports, emit_src=False)
    # Amaranth's name, words[0], is also what abc9 of Yosys calls the first bit of words: it stops when it meets both.
    return _INDEXED.sub(lambda name: name[0].translate(_ANGLES), text)


@contextmanager
def _builtin_yosys() -> Iterator[None]:
    before = os.environ.get("AMARANTH_USE_YOSYS")
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    try:
        yield
    finally:
        if before is None:
            del os.environ["AMARANTH_USE_YOSYS"]
