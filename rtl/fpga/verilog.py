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
"""An identifier that contains an index, which Verilog accepts as an escaped one, with a leading backslash."""

_ANGLES = str.maketrans("[]", "<>")


def to_verilog(component: wiring.Component, name: str, target: Target | None = None) -> str:
    """The Verilog of ``component`` for ``target`` (generic by default), with ``name`` as its top module.

    Ports are named after the members of the component's signature, joined by two underscores
    (``host_read__request__payload``); ``clk`` and ``rst`` (synchronous, active high) are added. Struct payloads are
    packed with their first field in the lowest bits. Members that are constant, like ``ready`` of a stream that is
    always ready, are no ports. Modules of submodules are named ``<name>.<submodule>``. A word of an array has a
    separate wire, named ``words<0>``. The Yosys that comes with Amaranth writes the text, unless
    ``AMARANTH_USE_YOSYS`` says otherwise.
    """
    members = (Value.cast(value) for _, _, value in component.signature.flatten(component))
    ports = [value for value in members if isinstance(value, Signal)]
    with _builtin_yosys():
        text = verilog.convert(component, name=name, platform=target or Target(), ports=ports, emit_src=False)
    # Yosys's abc9 uses Amaranth's name, words[0], for the first bit of words as well, and fails if both exist.
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
