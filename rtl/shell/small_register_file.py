"""Register file for cores with few logic cells: registers of one word."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from openmxu.arch.config import Config, ceil_log2
from openmxu.arch.registers import DEVICE_REGISTERS, WORD_BYTES, Access, DeviceRegister
from openmxu.rtl.shell.interfaces import REGISTER_WIDTH
from openmxu.rtl.shell.register_file import RegisterFile

__all__ = ["SmallRegisterFile"]


class SmallRegisterFile(RegisterFile):
    """:class:`~openmxu.rtl.shell.register_file.RegisterFile` for addresses below 2**31, so that one word tells all of a
    register, but for IDENTIFICATION. High words read as 0, and writes to them are ignored; a low word is written at
    once.

    Members
    -------
    requests, responses, management, management_response, core_resets, ring_busy
    status, fault, fault_index, event, event_tag, event_index, bus_error, bus_error_address, ring_tail
    control, interrupt_enable, time_limit, ring_base, ring_size, ring_head, host_offset, weight_offset, command
    interrupt_status, interrupt_status_set
        As of a :class:`~openmxu.rtl.shell.register_file.RegisterFile`; of what the core answers, the low word counts.
    """

    @staticmethod
    def fits(config: Config) -> bool:
        """Whether all that the configuration's registers hold fits into one word each."""
        return max(config.host_address_width, config.weight_address_width) < REGISTER_WIDTH

    def elaborate(self, platform: object) -> Module:
        m = Module()
        request, response = self.requests.p, self.responses
        in_core, high = request.word[-1], request.word[0]
        m.d.comb += [
            self.management.p.address.eq(request.word[1:-1]),
            self.management.p.write.eq(request.write),
            self.management.p.data.eq(request.data),
        ]
        write = Signal()
        words = {self._written_word(register) for register in DEVICE_REGISTERS if not register.is_in_core}
        self._write(m, {word: request.word == word for word in sorted(words)}, write, request.data)
        with m.FSM():
            with m.State("IDLE"):
                # A core that is being reset neither takes nor answers anything.
                asks_core = in_core & ~high & ~self.core_resets
                with m.If(self.requests.valid):
                    with m.If(asks_core):
                        m.d.comb += [self.management.valid.eq(1), self.requests.ready.eq(self.management.ready)]
                        with m.If(self.management.ready & ~request.write):
                            m.next = "AWAIT_CORE"
                    with m.Else():
                        m.d.comb += [self.requests.ready.eq(1), write.eq(request.write & ~in_core)]
                        m.d.sync += response.payload.eq(Mux(in_core, 0, self._value(m)))
                        with m.If(~request.write):
                            m.next = "ANSWER"
            with m.State("AWAIT_CORE"):
                m.d.comb += self.management_response.ready.eq(1)
                m.d.sync += response.payload.eq(
                    Mux(self.management_response.valid, self.management_response.payload[:REGISTER_WIDTH], 0)
                )
                with m.If(self.management_response.valid | self.core_resets):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += response.valid.eq(1)
                with m.If(response.ready):
                    m.next = "IDLE"
        return m

    def _value(self, m: Module) -> Value:
        """The word of the shell that is read."""
        value = Signal(REGISTER_WIDTH)
        with m.Switch(self.requests.p.word):
            for register in DEVICE_REGISTERS:
                if register.is_in_core or register.access is Access.WRITE:
                    continue
                word, constant = self._written_word(register), self._constant(register)
                with m.Case(word):
                    if constant is None:
                        m.d.comb += value.eq(Cat(Const(0, ceil_log2(register.alignment)), self._port(register)))
                    else:
                        m.d.comb += value.eq(constant)
                if constant is not None and constant >> REGISTER_WIDTH:
                    with m.Case(word + 1):
                        m.d.comb += value.eq(constant >> REGISTER_WIDTH)
        return value

    @staticmethod
    def _written_word(register: DeviceRegister) -> int:
        return register.offset // WORD_BYTES
