"""The ports of the AXI shell obey the rules, whatever the core does: proofs about the top module without its core.

The core is cut out: what it drives has any value in any cycle, reset of the core and flush included. So has the reset
of the whole, in the middle of bursts as well. Of the other side of the bus, no more than is written as assumption.
"""

from __future__ import annotations

from functools import partial

from amaranth.hdl import Array, Cat, ClockDomain, Const, DomainRenamer, Fragment, Module, Signal, Value, signed
from amaranth.lib import data

from openmxu.arch.config import Config, ceil_log2
from openmxu.rtl.axi.channels import read_data_layout
from openmxu.rtl.axi.top import Top
from openmxu.rtl.common.interfaces import burst_layout, most_host_beats, most_weight_beats
from openmxu.rtl.shell.interfaces import block_beats
from tb.formal.axi.rules import Rule, Rules, lite_rules, read_rules, write_rules
from tb.formal.axi.signals import Channel, LitePort, ReadPort, WritePort
from tb.formal.bursts import QueuedBursts, is_legal, know_splitter
from tb.formal.proof import Proof
from tb.formal.streams import know_queue

__all__ = ["CONFIG", "Port", "ReadsPort", "RegistersPort", "WritesPort"]

CONFIG = Config(
    size=4,
    unified_buffer_rows=2048,
    activation_lanes=1,
    host_data_bytes=16,
    weight_data_bytes=4,
    host_address_width=16,
    weight_address_width=16,
)
"""256 beats of the host's bus are 4 KiB, of the weights' 1 KiB; requests of the core are longer than a burst."""

OUTSTANDING = 2
"""Bursts in flight on each channel. More of them only make counters and queues longer."""

_UNITS = ("lite", "host_reader", "host_writer", "weight_reader")
_HOST, _WEIGHTS, _REGISTERS = "m_axi_host", "m_axi_weight", "s_axi"


class Port(Proof):
    """One port of the top module, with the unit behind it.

    Attributes
    ----------
    port
        Its name.
    rules
        The rules that are claimed.
    """

    depth = 1
    cover_depth = 12
    takes_minutes = True

    def __init__(self, name: str, unit: str) -> None:
        super().__init__(partial(Top, CONFIG, outstanding=OUTSTANDING), f"AXI, {name}")
        self.cuts = tuple(f"shell.{other}" for other in ("core", *_UNITS) if other != unit)
        self.port = name
        self.rules: list[Rule] = []
        self.prefix = f"shell.{unit}."

    def make_clock(self, m: Module) -> None:
        """The clock and the reset of the port."""
        m.domains.sync = domain = ClockDomain("sync")
        domain.clk = self.unit.aclk
        m.d.comb += domain.rst.eq(~self.unit.aresetn)

    def elaborated(self, platform: object) -> Fragment:
        """The top module, whose own domain has another name than that of the claims."""
        return DomainRenamer({"sync": "port"})(super().elaborated(platform))

    def claim_rules(self, m: Module, rules: list[Rule]) -> None:
        """Claim what this side of the bus has to obey."""
        self.rules = rules
        for rule in rules:
            self.claim(m, f"{rule.text} ({rule.section})", rule.holds)

    def assume_rules(self, m: Module, rules: list[Rule], *beginnings: str) -> None:
        """Assume of the other side the rules whose texts begin so."""
        for rule in rules:
            if rule.text.startswith(beginnings):
                self.assume(m, rule.holds)

    def within(self, name: str) -> Signal:
        """A register or wire of the unit behind the port."""
        return self.inside(f"{self.prefix}{name}")

    def request(self, m: Module, name: str, splitter: str | None, *, width: int, data_bytes: int, most: int) -> None:
        """Assume that a request of the core is possible: between one beat and ``most``, and if it is not split, one
        burst. Add lemmas about its splitter."""
        valid = self.inside(f"shell.core.{name}__request__valid")
        request = data.View(burst_layout(width), self.inside(f"shell.core.{name}__request__payload"))
        fits = (request.beats != 0) & (request.beats <= most)
        if splitter is None:
            block = block_beats(data_bytes)
            first = request.address[ceil_log2(data_bytes) :][: ceil_log2(block)]
            fits &= (request.address[: ceil_log2(data_bytes)] == 0) & (first + request.beats <= block)
        else:
            know_splitter(self, m, f"{self.prefix}{splitter}.")
        self.assume(m, ~valid | fits)

    def know_addresses(self, m: Module, channel: Channel, width: int, data_bytes: int) -> QueuedBursts:
        """Add lemmas about the queue of bursts: those that wait to be sent are legal."""
        queue = QueuedBursts(self, m, f"{self.prefix}queue.", OUTSTANDING, width, data_bytes)
        for place in range(OUTSTANDING):
            with m.If(queue.is_unsent(place)):
                self.lemma(m, is_legal(queue.address(place), queue.stored(place).len, data_bytes))
        self.reach(m, channel.valid & ~channel.ready & (channel["len"] != 0))
        return queue


class ReadsPort(Port):
    """The read channels of host memory or of weight memory."""

    def __init__(self, is_host: bool) -> None:
        name, unit = ("host memory, read", "host_reader") if is_host else ("weights, read", "weight_reader")
        super().__init__(name, unit)
        self._is_host = is_host

    def state(self, m: Module) -> None:
        if self._is_host:
            width, data_bytes = CONFIG.host_address_width, CONFIG.host_data_bytes
            self.request(m, "program", None, width=width, data_bytes=data_bytes, most=block_beats(data_bytes))
            self.request(
                m, "host_read", "splitter_data", width=width, data_bytes=data_bytes, most=most_host_beats(CONFIG)
            )
        else:
            width, data_bytes = CONFIG.weight_address_width, CONFIG.weight_data_bytes
            self.request(
                m, "weights", "splitter_data", width=width, data_bytes=data_bytes, most=most_weight_beats(CONFIG)
            )
        port = ReadPort(self.unit, _HOST if self._is_host else _WEIGHTS)
        rules = read_rules(m, port, data_bytes, OUTSTANDING)
        self.claim_rules(m, rules.manager)
        self.assume_rules(m, rules.subordinate, "R: data answers a burst")
        queue = self.know_addresses(m, port.ar, width, data_bytes)

        layout = read_data_layout(data_bytes)
        beats = [data.View(layout, self.within(f"beats.{name}")) for name in ("first", "spare")]
        has_first, has_room = self.within("beats.has_first"), self.within("beats.has_room")
        self.lemma(m, has_first | has_room)
        lasts = Signal(2)
        m.d.comb += lasts.eq((has_first & beats[0].last) + (~has_room & beats[1].last))
        waits = queue.unsent + port.ar.valid + lasts
        self.lemma(m, queue.held >= waits)
        issued, finished = rules.counts["issued"], rules.counts["finished"]
        self.lemma(m, (issued - finished)[: len(issued)] == (queue.held - waits)[: len(issued)])
        self.reach(m, port.r.transfers & port.r["last"])
        self.reach(m, port.r.valid & ~port.r.ready)


class WritesPort(Port):
    """The write channels of host memory."""

    def __init__(self) -> None:
        super().__init__("host memory, write", "host_writer")

    def state(self, m: Module) -> None:
        width, data_bytes = CONFIG.host_address_width, CONFIG.host_data_bytes
        self.request(m, "host_write", "splitter", width=width, data_bytes=data_bytes, most=most_host_beats(CONFIG))
        port = WritePort(self.unit, _HOST)
        rules = write_rules(m, port, data_bytes, OUTSTANDING)
        self.claim_rules(m, rules.manager)
        self.assume_rules(m, rules.subordinate, "B: a response follows")
        queue = self.know_addresses(m, port.aw, width, data_bytes)
        self._know_order(m, port, rules, queue)
        self.reach(m, port.w.transfers & port.w["last"] & (rules.counts["beats"] == 2))
        self.reach(m, port.b.transfers)
        self.reach(m, port.w.valid & ~port.w.ready & (rules.counts["addressed"] == 0) & (rules.counts["written"] == 1))

    def _know_order(self, m: Module, port: WritePort, rules: Rules, queue: QueuedBursts) -> None:
        """Add lemmas about the way of a burst's length from the splitter to either channel."""
        counts = rules.counts
        addressed, written, answered, beats = (counts[name] for name in ("addressed", "written", "answered", "beats"))
        bits = len(addressed)
        length_valid, length, count = (self.within(name) for name in ("length.output__valid", "length.held", "count"))
        fifo = {name: self.within(f"lengths.{name}") for name in ("level", "consume", "produce")}
        know_queue(self, m, f"{self.prefix}lengths.", OUTSTANDING, always_ready=True)
        ends = Signal()
        m.d.comb += ends.eq(port.w.valid & port.w["last"])
        has_first, has_room = self.within("replies.has_first"), self.within("replies.has_room")
        self.lemma(m, has_first | has_room)
        replies = has_first + ~has_room
        unaddressed, unwritten = Signal.like(addressed), Signal.like(addressed)
        m.d.comb += [
            unaddressed.eq(queue.unsent + port.aw.valid),
            unwritten.eq(ends + length_valid + fifo["level"]),
        ]
        for counter, waiting in ((addressed, unaddressed), (written, unwritten)):
            self.lemma(m, queue.held >= waiting + replies)
            self.lemma(m, (counter - answered)[:bits] == (queue.held - waiting - replies)[:bits])
            self.lemma(m, (counter + waiting)[: len(queue.produce)] == queue.produce)
        self.lemma(m, fifo["produce"] == queue.produce)

        def stored(place: Value) -> Value:
            return Array(queue.stored(index).len for index in range(OUTSTANDING))[place[: len(queue.produce)]]

        with m.If(port.aw.valid):
            self.lemma(m, port.aw["len"] == stored(addressed))
        with m.If(length_valid):
            self.lemma(m, length == stored(written + ends))
            self.lemma(m, count <= length)
        with m.Else():
            self.lemma(m, count == 0)
        with m.If(ends):
            self.lemma(m, (count == 0) & (beats == stored(written)))
        with m.Elif(port.w.valid):
            self.lemma(m, length_valid & (count == beats + 1))
        with m.Else():
            self.lemma(m, count == beats)
        ahead = Signal(signed(bits))
        m.d.comb += ahead.eq(addressed - written)
        for index in range(OUTSTANDING):
            kept = queue.stored(index).len
            place = Const(index, len(queue.produce))
            with m.If(queue.distance(fifo["consume"], place) < fifo["level"]):
                self.lemma(m, self.stored(f"{self.prefix}lengths.storage", place, 8) == kept)
            with m.If((ahead > 0) & ((place - written)[: len(place)] < ahead)):
                self.lemma(m, rules.lists["lengths"][index] == kept)
            with m.If((ahead < 0) & ((place - addressed)[: len(place)] < -ahead)):
                self.lemma(m, rules.lists["sent"][index] == kept)


class RegistersPort(Port):
    """The AXI4-Lite port of the registers."""

    takes_minutes = False

    def __init__(self) -> None:
        super().__init__("registers", "lite")

    def state(self, m: Module) -> None:
        port = LitePort(self.unit, _REGISTERS)
        rules = lite_rules(m, port)
        self.claim_rules(m, rules.subordinate)
        self.assume_rules(m, rules.manager, "")
        fsm = f"{self.prefix}fsm_state"
        counts = rules.counts

        def is_in(*states: str) -> Value:
            return Cat(self.is_in(state, fsm) for state in states).any()

        def open_(earlier: str, later: str) -> Value:
            return (counts[earlier] - counts[later])[: len(counts[earlier])]

        for channel, state in ((port.aw, "TAKE_WRITE"), (port.w, "TAKE_WRITE"), (port.ar, "TAKE_READ")):
            self.lemma(m, channel.ready == is_in(state))
            self.lemma(m, ~channel.ready | channel.valid)
        self.lemma(m, (port.r["resp"] == 0) & ~port.b["resp"][0])
        self.lemma(m, port.b.valid == is_in("REPLY"))
        self.lemma(m, port.r.valid == is_in("ANSWER"))
        self.lemma(m, open_("addressed", "answered") == is_in("WRITE", "REPLY"))
        self.lemma(m, open_("written", "answered") == is_in("WRITE", "REPLY"))
        self.lemma(m, open_("asked", "read") == is_in("READ", "WAIT", "ANSWER"))
        self.reach(m, port.b.transfers & (port.b["resp"] == 0))
        self.reach(m, port.b.transfers & (port.b["resp"] == 2))
        self.reach(m, port.r.transfers)
        self.reach(m, port.r.valid & ~port.r.ready)
