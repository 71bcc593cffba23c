"""Amaranth components as Verilog text."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from amaranth._toolchain.yosys import find_yosys
from amaranth.back import verilog
from amaranth.hdl import Fragment
from amaranth.lib import wiring

from openmxu.arch.collection import paused_collection
from openmxu.rtl.fpga.target import Target
from openmxu.rtl.simulation.clocked_memories import with_clocked_memories
from openmxu.rtl.simulation.clocked_registers import with_clocked_registers
from openmxu.rtl.simulation.replications import with_replications
from openmxu.rtl.simulation.sleeping_units import let_sleep, register_reset
from openmxu.rtl.verilog.rtlil_text import ports_of, to_rtlil
from openmxu.rtl.verilog.shared_modules import SharedModules
from openmxu.rtl.verilog.zeroed_memories import with_zeroed_memories

__all__ = ["named_verilog", "rtlil_to_verilog", "to_verilog"]

_INDEXED = re.compile(r"\\\S*\[\S*")
"""An identifier that contains an index, which Verilog accepts as an escaped one, with a leading backslash."""

_START = re.compile(r"\\\$auto\$verilog_backend\.cc:\S+ ")
"""A register with which Yosys makes processes without inputs run once, at the beginning of a simulation."""

_KEYWORD = re.compile(r"\\(\w+) ")
"""A name that is a word of the language."""

_ANGLES = str.maketrans("[]", "<>")


def to_verilog(component: wiring.Component, name: str, target: Target | None = None, *, loops: bool = False) -> str:
    """The Verilog of ``component`` for ``target`` (generic by default), with ``name`` as its top module.

    Ports are named after the members of the component's signature, joined by two underscores
    (``host_read__request__payload``); ``clk`` and ``rst`` (synchronous, active high) are added. Struct payloads are
    packed with their first field in the lowest bits. Members that are constant, like ``ready`` of a stream that is
    always ready, are no ports. Modules of submodules are named ``<name>.<submodule>``; those that several equal
    components share are named after their class, ``<name>_<class>``. A word of an array has a separate wire, named
    ``words<0>``. With ``loops``, for simulators that compile it, the array is one module of loops over all its
    elements, units sleep while nothing in them can change, registers and memories are computed at the clock edge
    (:mod:`openmxu.rtl.simulation`), and a reset has its effect a cycle later. The Yosys that comes with Amaranth writes
    the text, unless ``AMARANTH_USE_YOSYS`` says otherwise.
    """
    modules = SharedModules(name, loops=loops)
    target = dataclasses.replace(target or Target(), modules=modules)
    with _builtin_yosys(), paused_collection():
        fragment = Fragment.get(component, target)
        if loops:
            let_sleep(fragment)
            fragment = register_reset(fragment)
        text = to_rtlil(fragment, name, target, ports_of(component))
        text = rtlil_to_verilog(text + modules.rtlil)
    if loops:
        text = with_clocked_memories(with_clocked_registers(with_replications(text)))
    # Yosys's abc9 uses Amaranth's name, words[0], for the first bit of words as well, and fails if both exist.
    return _INDEXED.sub(lambda name: name[0].translate(_ANGLES), text) + modules.verilog


def rtlil_to_verilog(rtlil: str) -> str:
    """The Verilog of modules in Yosys's intermediate language."""
    with _builtin_yosys():
        return with_zeroed_memories(verilog._convert_rtlil_text(rtlil))


def named_verilog(rtlil: str) -> str:
    """Like :func:`rtlil_to_verilog`, but signals without a name have plain ones (``_012_``) for :func:`to_verilog`'s
    escaped numbers, so that no name of the text needs an escape if none of ``rtlil`` does."""
    script = f"read_rtlil <<rtlil\n{rtlil}\nrtlil\nproc -nomux -norom\nmemory_collect\nwrite_verilog"
    with _builtin_yosys():
        yosys = find_yosys(lambda version: version >= (0, 40))
        # Yosys warns of each process that Verilog cannot express; Amaranth writes none.
        text = yosys.run(["-q", "-"], script, ignore_warnings=True)
    text = _START.sub("_at_start_", text)
    return with_zeroed_memories(_KEYWORD.sub(r"\1_", text))


@contextmanager
def _builtin_yosys() -> Iterator[None]:
    before = os.environ.get("AMARANTH_USE_YOSYS")
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    try:
        yield
    finally:
        if before is None:
            del os.environ["AMARANTH_USE_YOSYS"]
