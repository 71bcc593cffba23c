"""Every component elaborates for every kind of configuration; combinational loops and double drivers are errors."""

from __future__ import annotations

import inspect
import re

import pytest
from amaranth.back import rtlil
from amaranth.hdl import CombinationalCycle, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.axi.top import Top
from openmxu.rtl.core import Core
from openmxu.rtl.cores import core_for
from openmxu.rtl.lite.core import LiteCore
from openmxu.rtl.serial.link.uart import uart_divisor
from openmxu.rtl.serial.top import Top as SerialTop
from tests.rtl.components import SYSTEMS, component_classes, make, modules

LANES = [
    pytest.param(
        size, 1 << exponent, marks=pytest.mark.slow if (size, exponent) not in ((2, 1), (4, 0), (8, 1)) else ()
    )
    for size in (2, 4, 8)
    for exponent in range(size.bit_length())
]

ODD = {
    "one bank": {"unified_buffer_rows": 3, "unified_buffer_banks": 1, "weight_fifo_tiles": 2, "parameter_sets": 1},
    "rows not a power of two": {"unified_buffer_rows": 150, "unified_buffer_banks": 2, "weight_fifo_tiles": 3},
    "four banks": {"unified_buffer_rows": 100, "unified_buffer_banks": 4, "weight_fifo_tiles": 5, "parameter_sets": 3},
    "few accumulators": {"accumulator_rows": 4, "parameter_sets": 1, "weight_queue_depth": 1},
    "accumulators not a power of two": {"accumulator_rows": 10, "weight_queue_depth": 5, "command_queue_depth": 2},
    "narrow addresses": {"host_address_width": 16, "weight_address_width": 17, "command_queue_depth": 16},
    "wide addresses": {"host_address_width": 64, "weight_address_width": 64, "unified_buffer_rows": 1 << 15},
}


def elaborate(component: wiring.Component) -> str:
    """RTLIL; members that are constant, like ``ready`` of a stream that is always ready, are no ports."""
    members = (Value.cast(value) for _, _, value in component.signature.flatten(component))
    ports = [value for value in members if isinstance(value, Signal)]
    return rtlil.convert(component, ports=ports, emit_src=False)


@pytest.mark.parametrize(("size", "lanes"), LANES)
def test_lanes(size, lanes):
    assert "attribute \\top 1" in elaborate(Core(Config(size=size, activation_lanes=lanes)))


@pytest.mark.parametrize("profile", ["full", "lite"])
@pytest.mark.parametrize("parameters", ODD.values(), ids=ODD)
def test_odd_sizes(parameters, profile):
    if profile == "lite":
        parameters = {**parameters, "weight_queue_depth": 1}
    assert elaborate(core_for(Config(size=2, activation_lanes=1, profile=profile, **parameters)))


@pytest.mark.parametrize(("addresses", "data_bytes"), [("narrow addresses", 4), ("wide addresses", 64)])
def test_axi(addresses, data_bytes):
    assert elaborate(Top(Config(size=2, activation_lanes=1, **ODD[addresses], host_data_bytes=data_bytes)))


@pytest.mark.parametrize(("addresses", "data_bytes"), [("narrow addresses", 4), ("wide addresses", 64)])
def test_serial(addresses, data_bytes):
    config = Config(size=2, activation_lanes=1, **ODD[addresses], host_data_bytes=data_bytes)
    assert elaborate(SerialTop(config, clock=25_000_000, baud=5_000_000))


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
    small = Config(size=2, activation_lanes=2, **ODD["one bank"], host_data_bytes=64)
    for config in (small, Config(size=8, activation_lanes=2, host_data_bytes=4)):
        assert elaborate(make(component, config))


def test_components_cover_the_package():
    names = {module.__name__.rpartition(".")[2] for module in modules()}
    found = {component.__module__.rpartition(".")[2] for component in component_classes()}
    assert names - found == {
        "board",
        "bursts",
        "channels",
        "commands",
        "carry_chain",
        "comparison",
        "cores",
        "countdown",
        "delayed",
        "ecp5_block",
        "ecp5_carry",
        "ice40_block",
        "instruction_fields",
        "interfaces",
        "messages",
        "pll",
        "room",
        "tally",
        "target",
        "verilog",
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
    """What is public says what it is; a component and a signature with ports describes each of them."""
    assert module.__doc__
    for name in module.__all__:
        item = getattr(module, name)
        if inspect.isclass(item) or inspect.isfunction(item):
            assert item.__doc__, f"{name} has no docstring"
    for component in component_classes():
        if component.__module__ == module.__name__:
            _check_members(component)


def _check_members(component: type[wiring.Component]) -> None:
    text = inspect.getdoc(component)
    if component in (Core, LiteCore):
        assert "CoreSignature" in text
        return
    _, heading, members = text.partition("Members\n-------\n")
    assert heading, f"{component.__name__} has no section Members"
    unit = make(component, Config(size=2, activation_lanes=1))
    elaborate(unit)  # amaranth warns about components that are never elaborated
    ports = {re.sub(r"_(first|second)$", "_<name>", name) for name in unit.signature.members}
    ports = {re.sub(r"^(s_axi|m_axi_[a-z]+)_\w+$", r"\1_<signal>", name) for name in ports}
    described = {name for line in re.findall(r"^\w.*$", members, re.MULTILINE) for name in line.split(", ")}
    assert described == ports, f"{component.__name__} describes other members than it has"
