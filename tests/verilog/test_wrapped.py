"""The wrapper around the AXI shell with readable names runs programs as the interpreter does."""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from openmxu.driver import MappedDevice
from openmxu.sim.axi import SimulatedAxi
from openmxu.sim.interpreter import Interpreter
from openmxu.sim.verilator import AXI
from openmxu.sim.verilator.layout import TOP
from openmxu.verilog.wrapper import wrapper, wrapper_name
from scripts.faults import CONFIG
from tb.lockstep import cases, outcome
from tests.verilog.axi_shell import axi_shell


def test_random_programs(tmp_path):
    design = axi_shell()
    netlist = tmp_path / "wrapped.v"
    # The harness asks for the name that the core within the shell has.
    inner = re.sub(rf"\b{TOP}\b", "inner_core", design.text)
    netlist.write_text(inner + wrapper(design).replace(wrapper_name(design.top), TOP))
    wrapped = dataclasses.replace(AXI, sources=(netlist,), netlist=netlist)
    transport = SimulatedAxi(CONFIG, design=wrapped, seed=1, stall_probability=0.2, memory_latency=20)
    reference = Interpreter(CONFIG)
    with MappedDevice(transport, ring_bytes=160) as device:
        for case in cases(1, 12, [CONFIG]):
            hosts = case.host_memory.copy(), case.host_memory.copy()
            for program in case.executions():
                got = outcome(device, program, hosts[0], case.weight_memory)
                assert got == outcome(reference, program, hosts[1], case.weight_memory), case.seed
                assert np.array_equal(*hosts), case.seed
            device.reset()
            reference.reset()
