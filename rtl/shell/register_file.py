"""Register file: the registers of :mod:`openmxu.arch.registers`."""

from collections.abc import Mapping
from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Const, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.events import IDENTIFICATION
from openmxu.arch.registers import (
    ADDRESS_WIDTH,
    CORE_WINDOW,
    DEVICE_REGISTERS,
    MAP_VERSION,
    WORD_BYTES,
    Access,
    DeviceRegister,
    ShellKind,
    configuration_value,
)
from openmxu.rtl.common.interfaces import ManagementRequest
from openmxu.rtl.shell.interfaces import REGISTER_WIDTH, access_layout

__all__ = ["RegisterFile", "register_shape"]

_OWN = tuple(register for register in DEVICE_REGISTERS if not register.is_in_core)
_RING_CONSTANTS = ("RING_BASE", "RING_SIZE")
_GROUP = 4
"""Neighbours among which one is chosen first; a power of two."""


def register_shape(register: DeviceRegister, config: Config) -> ShapeLike:
    """What a register holds: a layout of its fields, their names in lower case, or a number without the bits that are
    always 0."""
    if register.fields:
        fields = {field.name.lower(): data.Field(field.width, field.offset) for field in register.fields}
        return data.FlexibleLayout(max(field.offset + field.width for field in register.fields), fields)
    width = register.width
    if register.address_parameter is not None:
        width = min(width, getattr(config, register.address_parameter))
    return width - ceil_log2(register.alignment)


class RegisterFile(wiring.Component):
    """Answers accesses, some with what the core's management port says. Accesses are executed in order.

    Of a 64-bit register, a read of the low word keeps the high word for a read that follows; a write of the low word
    waits for that of the high word, which writes both.

    Parameters
    ----------
    config
        Sizes of the core.
    kind
        What the SHELL register tells.

    Members
    -------
    requests, responses
        Accesses, see :func:`~openmxu.rtl.shell.interfaces.access_layout`; reads are answered.
    management, management_response
        The core's port.
    core_resets
        While set, the core's registers read as 0.
    ring_busy
        Base and size of the ring cannot be written.
    status, fault, fault_index, event, event_tag, event_index, bus_error, bus_error_address, ring_tail
        What registers read as.
    control, interrupt_enable, time_limit, ring_base, ring_size, ring_head, host_offset, weight_offset
        What was written. Resets of the core clear ``control``; ``ring_head`` is 0 while the ring is not enabled.
    command
        Bits that are written, for one cycle, the cycle after the access.
    interrupt_status, interrupt_status_set
        The interrupts that have happened, and those that happen now.
    """

    def __init__(self, config: Config, kind: ShellKind) -> None:
        self._config = config
        self._kind = kind
        access = access_layout(ADDRESS_WIDTH)
        members = {
            "requests": In(stream.Signature(access)),
            "responses": Out(stream.Signature(REGISTER_WIDTH)),
            "management": Out(stream.Signature(ManagementRequest)),
            "management_response": In(stream.Signature(64)),
            "core_resets": In(1),
            "ring_busy": In(1),
        }
        for register in _OWN:
            name, shape = register.name.lower(), register_shape(register, config)
            if self._constant(register) is not None:
                continue
            members[name] = In(shape) if register.access is Access.READ else Out(shape, init=register.initial or None)
            if register.access is Access.CLEAR:
                members[f"{name}_set"] = In(shape)
        super().__init__(members)

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def _constant(self, register: DeviceRegister) -> int | None:
        """The value of a register that never changes."""
        if register.parameter is not None:
            return configuration_value(self.config, register.parameter)
        if register.name == "IDENTIFICATION":
            return IDENTIFICATION
        if register.name == "SHELL":
            values = {"KIND": self._kind, "VERSION": MAP_VERSION}
            return sum(int(value) << register.field(name).offset for name, value in values.items())
        return None

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request = self.requests.p
        in_core, high = request.word[-1], request.word[0]
        low_half = Signal(REGISTER_WIDTH, reset_less=True)
        high_half = Signal(REGISTER_WIDTH, reset_less=True)
        value = Signal(REGISTER_WIDTH)
        high_value = Signal(REGISTER_WIDTH)
        keeps_high = Signal()
        write = Signal()
        m.d.comb += [
            self.management.p.address.eq(request.word[1:-1]),
            self.management.p.write.eq(request.write),
            self.management.p.data.eq(Cat(low_half, request.data)),
        ]
        is_ = self._decode(m)
        self._read(m, is_, Cat(value, high_value), keeps_high, high_half)
        # The choice among all registers takes two cycles of its own.
        chosen = Signal.like(value, reset_less=True)
        m.d.sync += chosen.eq(value)
        self._write(m, is_, write, Cat(low_half, request.data))

        # What is answered is known before it is known when.
        from_core = Signal()
        answers = Signal()
        # Whether the answer has a high word, and whether this may be it: the last time that it may be, it is.
        is_wide = Signal()
        may_answer = Signal()
        was_reset = Signal()
        m.d.sync += [was_reset.eq(self.core_resets), is_wide.eq(in_core | keeps_high)]
        word = Mux(from_core, self.management_response.payload, Cat(chosen, high_value))
        with m.If(~self.responses.valid):
            m.d.sync += self.responses.payload.eq(word[:REGISTER_WIDTH])
        with m.If(may_answer & is_wide):
            m.d.sync += high_half.eq(word[REGISTER_WIDTH:])

        def answer() -> None:
            m.d.comb += [self.requests.ready.eq(1), answers.eq(1)]
            m.d.sync += self.responses.valid.eq(1)
            m.next = "ANSWER"

        def give_up() -> None:
            """Answer 0, which is what all registers outside of the core add up to."""
            m.d.sync += from_core.eq(0)
            m.next = "CHOOSE"

        with m.If(write & ~high):
            m.d.sync += low_half.eq(request.data)
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += from_core.eq(in_core & ~high)
                with m.If(self.requests.valid):
                    with m.If(in_core & request.write & high):
                        m.next = "WRITE_CORE"
                    with m.Elif(in_core & ~request.write & ~high):
                        m.next = "ASK_CORE"
                    with m.Elif(request.write):
                        m.next = "WRITE_OWN"
                    with m.Else():
                        m.next = "CHOOSE"
            with m.State("WRITE_OWN"):
                m.d.comb += [self.requests.ready.eq(1), write.eq(1)]
                m.next = "IDLE"
            with m.State("CHOOSE"):
                m.next = "CHOOSE_GROUP"
            with m.State("CHOOSE_GROUP"):
                m.next = "READ_OWN"
            with m.State("READ_OWN"):
                m.d.comb += may_answer.eq(1)
                answer()
            with m.State("WRITE_CORE"):
                m.d.comb += [self.management.valid.eq(1), self.requests.ready.eq(self.management.ready)]
                with m.If(self.management.ready):
                    m.next = "IDLE"
            with m.State("ASK_CORE"):
                with m.If(was_reset):
                    give_up()
                with m.Else():
                    m.d.comb += self.management.valid.eq(1)
                    with m.If(self.management.ready):
                        m.next = "AWAIT_CORE"
            with m.State("AWAIT_CORE"):
                # A reset may have come before the answer.
                m.d.comb += [self.management_response.ready.eq(1), may_answer.eq(1)]
                with m.If(self.management_response.valid):
                    answer()
                with m.Elif(was_reset):
                    give_up()
            with m.State("ANSWER"):
                with m.If(self.responses.ready):
                    m.d.sync += self.responses.valid.eq(0)
                    m.next = "IDLE"
        return m

    @staticmethod
    def _written_word(register: DeviceRegister) -> int:
        """Number of the word whose write takes effect."""
        return register.offset // WORD_BYTES + register.is_wide

    def _port(self, register: DeviceRegister) -> Value:
        return Value.cast(getattr(self, register.name.lower()))

    def _decode(self, m: Module) -> dict[int, Signal]:
        """One register for each word that is more than read, set in the cycle after that in which a request for it
        comes."""
        words = {
            register.offset // WORD_BYTES + half
            for register in _OWN
            for half in range(1 + register.is_wide)
            if register.is_wide or register.access is not Access.READ
        }
        is_ = {word: Signal(name=f"is_{word}", reset_less=True) for word in sorted(words)}
        m.d.sync += [bit.eq(self.requests.p.word == word) for word, bit in is_.items()]
        return is_

    def _read(self, m: Module, is_: dict[int, Signal], value: Signal, keeps_high: Signal, high_half: Signal) -> None:
        """The word that is read, and above it the high word if it is the low one of two."""
        is_core_high = self.requests.p.word.matches(*self._core_high_words())
        contents, lows, highs, highs_of_lows = {}, [], [is_core_high], []
        for register in _OWN:
            if register.access is Access.WRITE:
                continue
            word = register.offset // WORD_BYTES
            constant = self._constant(register)
            if constant is None:
                content = Cat(Const(0, ceil_log2(register.alignment)), self._port(register), Const(0, len(value)))
            else:
                content = Const(constant, len(value))
            contents[word] = content[:REGISTER_WIDTH]
            if register.is_wide:
                lows.append(is_[word])
                highs.append(self.requests.p.word == word + 1)
                highs_of_lows.append(Mux(is_[word], content[REGISTER_WIDTH : len(value)], 0))
        # One of each few neighbours is chosen first, and the others become 0; no two of them are left.
        is_high = Signal(reset_less=True)
        kept = Signal(REGISTER_WIDTH, reset_less=True)
        m.d.sync += [is_high.eq(Cat(highs).any()), kept.eq(Mux(is_high, high_half, 0))]
        groups = [kept]
        for first in sorted({word // _GROUP * _GROUP for word in contents}):
            group = Signal(REGISTER_WIDTH, name=f"group_{first}", reset_less=True)
            words = Array(contents.get(first + place, Const(0, REGISTER_WIDTH)) for place in range(_GROUP))
            place = self.requests.p.word[: ceil_log2(_GROUP)]
            is_here = Signal(name=f"is_in_{first}", reset_less=True)
            m.d.sync += is_here.eq(self.requests.p.word[ceil_log2(_GROUP) :] == first // _GROUP)
            m.d.sync += group.eq(Mux(is_here, words[place], 0))
            groups.append(group)
        m.d.comb += [
            value.eq(Cat(reduce(or_, groups), reduce(or_, highs_of_lows))),
            keeps_high.eq(Cat(lows).any()),
        ]

    @staticmethod
    def _core_high_words() -> tuple[str, ...]:
        """The high words of the core's registers, as a pattern."""
        word_bits = ADDRESS_WIDTH - ceil_log2(WORD_BYTES)
        assert 2 * CORE_WINDOW == 1 << ADDRESS_WIDTH
        return (f"1{'-' * (word_bits - 2)}1",)

    def _write(self, m: Module, is_: Mapping[int, Value], write: Signal, both: Value) -> None:
        """Keep what is written to the registers that hold it."""
        for register in _OWN:
            if register.access is Access.READ:
                continue
            port, low = self._port(register), ceil_log2(register.alignment)
            word = self._written_word(register)
            given = (both if register.is_wide else self.requests.p.data)[low : low + len(port)]
            written = Signal(name=f"{register.name.lower()}_written")
            m.d.comb += written.eq(write & is_[word])
            if register.access is Access.WRITE:
                m.d.sync += port.eq(Mux(written, given, 0))
            elif register.access is Access.CLEAR:
                happens = Value.cast(getattr(self, f"{register.name.lower()}_set"))
                m.d.sync += port.eq(port | happens)
                with m.If(written):
                    m.d.sync += port.eq(port & ~given | happens)
            else:
                with m.If(written & ~self.ring_busy if register.name in _RING_CONSTANTS else written):
                    m.d.sync += port.eq(given)
        with m.If(~self.control.enable):
            m.d.sync += self.ring_head.eq(0)
        with m.If(self.core_resets):
            m.d.sync += self.control.enable.eq(0)
