"""The AXI shell with the rules beside it, for simulation: violations by either side of a port are noticed."""

from __future__ import annotations

from amaranth.hdl import Cat, ClockDomain, DomainRenamer, Fragment, Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.rtl.axi.top import Top
from tb.formal.axi.rules import Rule, lite_rules, read_rules, write_rules
from tb.formal.axi.signals import LitePort, ReadPort, WritePort

__all__ = ["WatchedTop", "rule_names"]

_OUTSTANDING = 16


def _rules(m: Module, top: Top) -> list[tuple[str, Rule]]:
    """All rules of both sides of all ports, each with the name of its port."""
    config = top.config
    ports = {
        "registers": lite_rules(m, LitePort(top, "s_axi")),
        "weights, read": read_rules(m, ReadPort(top, "m_axi_weight"), config.weight_data_bytes, _OUTSTANDING),
        "host memory, read": read_rules(m, ReadPort(top, "m_axi_host"), config.host_data_bytes, _OUTSTANDING),
        "host memory, write": write_rules(m, WritePort(top, "m_axi_host"), config.host_data_bytes, _OUTSTANDING),
    }
    return [(name, rule) for name, rules in ports.items() for rule in (*rules.manager, *rules.subordinate)]


def rule_names(config: Config) -> list[str]:
    """Port and text of each rule, in the order of the bits of ``violations``."""
    watched = WatchedTop(config)
    Fragment.get(watched, None)  # without that, Amaranth warns of what is never used
    return [f"{port}: {rule.text}" for port, rule in watched.rules]


class WatchedTop(wiring.Component):
    """The top module; its members, and those below. To be elaborated once.

    Parameters
    ----------
    config
        Sizes of the core.

    Members
    -------
    violated
        A rule has been violated since the last reset.
    violations
        Which ones: a bit for each of :func:`rule_names`.
    """

    def __init__(self, config: Config) -> None:
        self._top = Top(config)
        self._module = Module()
        self.rules = _rules(self._module, self._top)
        members = dict(self._top.signature.members)
        super().__init__({**members, "violated": Out(1), "violations": Out(len(self.rules))})

    def elaborate(self, platform: object) -> Module:
        m = self._module
        top = self._top
        m.domains.sync = domain = ClockDomain("sync")
        domain.clk = top.aclk
        m.d.comb += domain.rst.eq(~top.aresetn)
        m.submodules.top = DomainRenamer({"sync": "port"})(top)
        for name, member in top.signature.members.items():
            inside, outside = Value.cast(getattr(top, name)), Value.cast(getattr(self, name))
            m.d.comb += inside.eq(outside) if member.flow is In else outside.eq(inside)
        # In the first cycle of a reset outputs may be those of before, or low already.
        broken = Cat(~rule.holds.any() & top.aresetn for _, rule in self.rules)
        m.d.sync += self.violations.eq(self.violations | broken)
        m.d.comb += self.violated.eq(self.violations.any())
        return m
