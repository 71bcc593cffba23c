"""No port's VALID waits for READY: while VALID is low, READY has no effect on anything.

Two copies of the top module get the same inputs, but for READY in cycles in which VALID is low. Their registers and
memories stay equal for ever, so nothing that either copy does, its VALID included, depends on such a READY.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, ClockDomain, Const, DomainRenamer, Fragment, MemoryInstance, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from openmxu.arch.config import ceil_log2
from openmxu.rtl.axi.top import Top
from tb.formal.axi.ports import CONFIG, OUTSTANDING, UNITS
from tb.formal.axi.rules import Rule
from tb.formal.proof import Proof, cut

__all__ = ["Independence"]


class _Twins(wiring.Component):
    """Two top modules with the same inputs, but for some channels' READY while VALID is low.

    Members are the inputs of the top module, and ``other_<channel>``: READY of the second one in these cycles.
    """

    def __init__(self, channels: Sequence[str]) -> None:
        self.tops = [Top(CONFIG, outstanding=OUTSTANDING) for _ in range(2)]
        self._channels = tuple(channels)
        members = self.tops[0].signature.members.items()
        inputs = {name: In(member.shape) for name, member in members if member.flow is In}
        super().__init__({**inputs, **{f"other_{channel}": In(1) for channel in channels}})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name, top in zip(("first", "second"), self.tops, strict=True):
            m.submodules[name] = DomainRenamer({"sync": name})(top)
            for member in (name for name, member in top.signature.members.items() if member.flow is In):
                value = getattr(self, member)
                channel = member.removesuffix("ready")
                if top is self.tops[1] and channel in self._channels:
                    value = Mux(getattr(top, f"{channel}valid"), value, getattr(self, f"other_{channel}"))
                m.d.comb += getattr(top, member).eq(value)
        return m


class Independence(Proof):
    """The channels that one unit behind the ports drives.

    Parameters
    ----------
    port
        Name of the port, as in :mod:`tb.formal.axi.ports`.
    unit
        Name of the unit in the shell.
    prefix, channels
        Prefix of the port's signals, and the names of the channels.

    Attributes
    ----------
    rules
        The rules that are claimed.
    """

    depth = 1
    cover_depth = 6
    takes_minutes = True

    def __init__(self, port: str, unit: str, prefix: str, channels: Sequence[str]) -> None:
        prefixes = [f"{prefix}_{channel}" for channel in channels]
        super().__init__(lambda: _Twins(prefixes), f"AXI, {port}, READY")
        self.port = port
        self.rules: list[Rule] = []
        self._channels = tuple(prefixes)
        self._cut_units = tuple(other for other in ("core", *UNITS) if other != unit)

    def make_clock(self, m: Module) -> None:
        """The clock of both, and their reset."""
        m.domains.sync = domain = ClockDomain("sync")
        domain.clk = self.unit.aclk
        m.d.comb += domain.rst.eq(~self.unit.aresetn)

    def elaborated(self, platform: object) -> Fragment:
        """Both, without the parts that do not belong to the channels; what these drive is the same for both."""
        fragment = super().elaborated(platform)
        self._driven = [
            [signal for unit in self._cut_units for signal in cut(fragment, f"{twin}.shell.{unit}")]
            for twin in ("first", "second")
        ]
        self._free += self._driven[0]
        self._twins = fragment
        return fragment

    def state(self, m: Module) -> None:
        for first, second in zip(*self._driven, strict=True):
            m.d.comb += second.eq(first)
        twins = [inner for inner, name, _ in self._twins.subfragments if name in ("first", "second")]
        registers = [_registers(twin) for twin in twins]
        for first, second in zip(*registers, strict=True):
            self.lemma(m, first == second)
        for words in zip(*[_words(twin) for twin in twins], strict=True):
            self.lemma(m, words[0] == words[1])
        first, second = self.unit.tops
        if "lite" not in self._cut_units:
            for channel, state in (("b", "REPLY"), ("r", "ANSWER")):
                valid = getattr(first, f"s_axi_{channel}valid")
                self.lemma(m, valid == self.is_in(state, "first.shell.lite.fsm_state"))
        self.rules.clear()
        for channel in self._channels:
            outputs = [
                name
                for name, member in first.signature.members.items()
                if name.startswith(channel) and member.flow is not In
            ]
            same = Cat(getattr(first, name) for name in outputs) == Cat(getattr(second, name) for name in outputs)
            text = f"{channel.rpartition('_')[2].upper()}: READY has no effect while VALID is low"
            self.rules.append(Rule("A3.2.1", text, same))
            self.claim(m, f"{text} (A3.2.1)", same)
            valid = getattr(first, f"{channel}valid")
            self.reach(m, ~valid & getattr(self.unit, f"other_{channel}"))


def _registers(fragment: Fragment) -> list[Signal]:
    """The registers of a fragment and its subfragments, in a fixed order."""
    found = [
        signal
        for domain, statements in fragment.statements.items()
        if domain != "comb"
        for statement in statements
        for signal in statement._lhs_signals()
    ]
    own = {id(signal): signal for signal in found}.values()
    return [*own, *(signal for inner, _, _ in fragment.subfragments for signal in _registers(inner))]


def _words(fragment: Fragment) -> list[Value]:
    """All words of the memories in a fragment."""
    words = []
    for inner, _, _ in fragment.subfragments:
        if isinstance(inner, MemoryInstance):
            for place in range(inner._data.depth):
                word = Signal(inner._data.shape)
                address = Const(place, ceil_log2(inner._data.depth))
                inner.read_port(domain="comb", addr=address, data=word, en=Const(1), transparent_for=())
                words.append(word)
        else:
            words += _words(inner)
    return words
