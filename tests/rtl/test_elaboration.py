"""Every component elaborates for every kind of configuration; combinational loops and double drivers are errors.

``test_lint.py`` elaborates the designs that it checks: other configurations, and the AXI shell.
"""

from __future__ import annotations

import gc
import inspect
import re
import warnings

import pytest
from amaranth.back import rtlil
from amaranth.hdl import CombinationalCycle, Module, Signal, UnusedElaboratable, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.core import Core
from openmxu.rtl.cores import core_for
from openmxu.rtl.lite.core import LiteCore
from openmxu.rtl.serial.link.uart import uart_divisor
from openmxu.rtl.serial.uart_shell import UartShell
from openmxu.rtl.shell.clocked import Clocked
from tests.rtl.components import ADDRESSES, ON_BLOCKS, SYSTEMS, component_classes, make, modules

LANES = [(size, 1 << exponent) for size in (2, 4, 8) for exponent in range(size.bit_length())]

ODD = {
    "one bank": {"unified_buffer_rows": 3, "unified_buffer_banks": 1, "weight_fifo_tiles": 2, "parameter_sets": 1},
    "two banks, few accumulators": {
        "unified_buffer_rows": 150,
        "unified_buffer_banks": 2,
        "weight_fifo_tiles": 3,
        "accumulator_rows": 4,
        "parameter_sets": 1,
        "weight_queue_depth": 1,
    },
    "four banks, accumulators not a power of two": {
        "unified_buffer_rows": 100,
        "unified_buffer_banks": 4,
        "weight_fifo_tiles": 5,
        "accumulator_rows": 10,
        "parameter_sets": 3,
        "weight_queue_depth": 5,
        "command_queue_depth": 2,
    },
}


def elaborate(component: wiring.Component) -> str:
    """Convert to RTLIL; constant members, such as ``ready`` of a stream that is always ready, do not become ports."""
    members = (Value.cast(value) for _, _, value in component.signature.flatten(component))
    ports = [value for value in members if isinstance(value, Signal)]
    return rtlil.convert(component, ports=ports, emit_src=False)


@pytest.mark.slow  # test_lint.py has one number of lanes for each size
@pytest.mark.parametrize(("size", "lanes"), LANES)
def test_lanes(size, lanes):
    assert "attribute \\top 1" in elaborate(Core(Config(size=size, activation_lanes=lanes)))


@pytest.mark.parametrize("profile", ["standard", "lite", "full"])
@pytest.mark.parametrize("parameters", ODD.values(), ids=ODD)
def test_odd_sizes(parameters, profile):
    if profile == "lite":
        parameters = {**parameters, "weight_queue_depth": 1}
    assert elaborate(core_for(Config(size=2, activation_lanes=1, profile=profile, **parameters)))


@pytest.mark.parametrize("addresses", ADDRESSES.values(), ids=ADDRESSES)
def test_addresses_of_the_lite_core(addresses):
    parameters = {**addresses, "weight_queue_depth": 1}
    assert elaborate(core_for(Config(size=2, activation_lanes=1, profile="lite", **parameters)))


def test_serial():
    config = Config(size=2, activation_lanes=1, **ADDRESSES["narrow"], host_data_bytes=4)
    assert elaborate(Clocked(UartShell(config, clock=25_000_000, baud=5_000_000)))


@pytest.mark.parametrize(
    ("clock", "baud", "message"),
    [
        (12_000_000, 7_000_000, "1.71 cycles per bit"),
        (10_000_000, 2_200_000, "4.55 cycles"),
        (3_000_000, 1_000_000, "3.00"),
    ],
)
def test_baud_rates(clock, baud, message):
    with pytest.raises(ValueError, match=f"^a clock of {clock} Hz cannot make {baud} baud: {message}"):
        uart_divisor(clock, baud)


@pytest.mark.parametrize("component", [item for item in component_classes() if item not in SYSTEMS])
def test_unit_alone(component: type[wiring.Component]):
    unit = make(component, Config(profile="full", size=2, activation_lanes=2, **ODD["one bank"], host_data_bytes=64))
    assert elaborate(unit)
    _check_members(unit)
    if component in ON_BLOCKS:  # test_lint.py has the others with such a configuration
        assert elaborate(make(component, Config(size=8, activation_lanes=2, host_data_bytes=4)))


@pytest.mark.parametrize("component", [item for item in SYSTEMS if item not in (Core, LiteCore, Clocked)])
def test_members_of_systems(component: type[wiring.Component]):
    with warnings.catch_warnings(action="ignore", category=UnusedElaboratable):
        _check_members(make(component, Config(size=2, activation_lanes=1)))
        gc.collect()


def test_components_cover_the_package():
    names = {module.__name__.rpartition(".")[2] for module in modules()}
    found = {component.__module__.rpartition(".")[2] for component in component_classes()}
    assert names - found == {
        "board",
        "channels",
        "commands",
        "convert",
        "carry_chain",
        "comparison",
        "cores",
        "counting",
        "delayed",
        "ecp5_block",
        "ecp5_carry",
        "ice40_block",
        "instruction_fields",
        "interfaces",
        "messages",
        "modules",
        "pll",
        "clocked_memories",
        "clocked_registers",
        "element_grid",
        "replications",
        "rtlil_text",
        "shared_modules",
        "sleeping_units",
        "target",
        "zeroed_memories",
    }


def test_loops_are_errors():
    class Loop(wiring.Component):
        def __init__(self) -> None:
            super().__init__({"a": In(1), "b": Out(1)})

        def elaborate(self, platform: object) -> Module:
            m = Module()
            m.d.comb += self.b.eq(~self.b & self.a)
            return m

    with pytest.raises(CombinationalCycle):
        elaborate(Loop())


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__.rpartition(".")[2])
def test_docstrings(module):
    """All public items have docstrings."""
    assert module.__doc__
    for name in module.__all__:
        item = getattr(module, name)
        if inspect.isclass(item) or inspect.isfunction(item):
            assert item.__doc__, f"{name} has no docstring"


@pytest.mark.parametrize("core", [Core, LiteCore])
def test_ports_of_cores_are_those_of_their_signature(core):
    assert "CoreSignature" in inspect.getdoc(core)


def _check_members(unit: wiring.Component) -> None:
    """The docstring of a component must describe exactly its ports."""
    name = type(unit).__name__
    _, heading, members = inspect.getdoc(unit).partition("Members\n-------\n")
    assert heading, f"{name} has no section Members"
    ports = {re.sub(r"_(first|second)$", "_<name>", name) for name in unit.signature.members}
    ports = {re.sub(r"^(s_axi|m_axi_[a-z]+)_\w+$", r"\1_<signal>", name) for name in ports}
    described = {name for line in re.findall(r"^\w.*$", members, re.MULTILINE) for name in line.split(", ")}
    assert described == ports, f"{name} describes other members than it has"
