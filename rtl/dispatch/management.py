"""Management: counters, windows, status and commands in 64-bit registers."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from openmxu.arch.config import Config
from openmxu.arch.events import IDENTIFICATION, STATUS_UNITS_OFFSET, Command, Counter
from openmxu.arch.events import Management as Address
from openmxu.arch.isa import UNITS
from openmxu.rtl.common.interfaces import ManagementRequest
from openmxu.rtl.dispatch.check.memory_range import MemoryWindows
from openmxu.rtl.dispatch.counters import WORD_BITS, Counters, increments_layout

__all__ = ["Management"]


class Management(wiring.Component):
    """The host's view of the core, besides instructions and events.

    Parameters
    ----------
    config
        Sizes of the core.
    is_small
        For cores with few logic cells: only cycles are counted, while ``running``; the other counters read as 0, and
        there are registers only for written values and the response.

    Members
    -------
    requests, responses
        Register accesses. Reads are answered in order, that of a counter within two rounds of
        :class:`~openmxu.rtl.dispatch.counters.Counters`; writes are not answered.
    increments
        See :func:`~openmxu.rtl.dispatch.counters.increments_layout`; unused if ``is_small``.
    units_busy, running, faulted, waiting, scrubbing
        Bits of the STATUS register.
    windows
        See :class:`~openmxu.rtl.dispatch.check.memory_range.MemoryWindows`; empty after reset.
    clear_fault, acknowledge, scrub
        Set for one cycle when the host writes them to the COMMAND register.
    """

    def __init__(self, config: Config, *, is_small: bool = False) -> None:
        self._config = config
        self._is_small = is_small
        super().__init__(
            {
                "requests": In(stream.Signature(ManagementRequest)),
                "responses": Out(stream.Signature(64)),
                "increments": In(increments_layout()),
                "units_busy": In(len(UNITS)),
                "running": In(1),
                "faulted": In(1),
                "waiting": In(1),
                "scrubbing": In(1),
                "windows": Out(MemoryWindows(config)),
                "clear_fault": Out(1),
                "acknowledge": Out(1),
                "scrub": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if self._is_small:
            self._answer_at_once(m)
        else:
            self._answer(m)
        return m

    def _answer(self, m: Module) -> None:
        """Answer from all registers and counters, which may be far away on the chip."""
        # One access at a time: the host is slow, so that registers on long paths cost nothing.
        offered = self.requests.p
        # No writable register is wider.
        widest = max(field.width for _, field in MemoryWindows(self._config))
        request = Signal(
            data.StructLayout({"address": offered.address.shape(), "write": 1, "data": widest}), reset_less=True
        )
        stages = Signal(2)
        waits = Signal()
        taken = Signal()
        write = Signal()
        m.d.comb += [
            taken.eq(self.requests.valid & self.requests.ready),
            write.eq(stages[0] & request.write),
        ]
        m.d.sync += [
            stages.eq(Cat(taken, stages[0] & ~request.write)),
            self.requests.ready.eq((stages == 0) & ~waits & ~self.responses.valid & ~taken),
        ]
        with m.If(taken):
            m.d.sync += [
                request.address.eq(offered.address),
                request.write.eq(offered.write),
                request.data.eq(offered.data),
            ]

        is_command = write & (request.address == Address.COMMAND)
        clears, clear = Signal(), Signal(init=1)
        was_scrubbing = Signal()
        # In registers, because they have long wires.
        m.d.sync += [
            was_scrubbing.eq(self.scrubbing),
            clear.eq(clears),
            clears.eq((is_command & request.data[Command.CLEAR_COUNTERS]) | (was_scrubbing & ~self.scrubbing)),
            *self._execute(is_command, request.data),
        ]
        m.submodules.counters = counters = Counters(self._config)
        # Registered, because increments come from far away on the chip.
        m.d.sync += counters.increments.eq(self.increments)
        m.d.comb += [counters.clear.eq(clear), counters.number.eq(request.address - Address.COUNTERS)]

        # A cycle old, because the units are far away on the chip.
        busy = Signal.like(self.units_busy)
        status = self._status(busy)
        m.d.sync += busy.eq(self.units_busy)
        # The one-hot selection is registered, because the selected registers are far apart on the chip.
        writes = Signal()
        m.d.sync += writes.eq(write)
        chosen: Value = Const(0, 64)
        for address, register in (status | self._windows).items():
            is_chosen = Signal(name=f"is_{address.name.lower()}", reset_less=True)
            m.d.sync += is_chosen.eq(request.address == address)
            chosen |= Mux(is_chosen, register, 0)
            if address in self._windows:
                with m.If(writes & is_chosen):
                    m.d.sync += register.eq(request.data)

        # A counter's halves come one after the other.
        is_counter, has_low = Signal(), Signal()
        low, high = self.responses.payload[:WORD_BITS], self.responses.payload[WORD_BITS:]
        m.d.comb += is_counter.eq(
            (request.address >= Address.COUNTERS) & (request.address < Address.COUNTERS + len(Counter))
        )

        with m.If(stages[1]):
            m.d.sync += [waits.eq(is_counter), has_low.eq(0), self.responses.payload.eq(chosen)]
        with m.If(waits & counters.shows[0]):
            m.d.sync += [has_low.eq(1), low.eq(counters.word)]
        with m.If(waits & has_low & counters.shows[1]):
            m.d.sync += [waits.eq(0), high.eq(counters.word), self.responses.valid.eq(1)]
        with m.If(stages[1] & ~is_counter):
            m.d.sync += self.responses.valid.eq(1)
        with m.If(self.responses.valid & self.responses.ready):
            m.d.sync += self.responses.valid.eq(0)

    def _answer_at_once(self, m: Module) -> None:
        """Execute and answer a request in the cycle in which it is taken."""
        request = self.requests.p
        taken, write, is_command = Signal(), Signal(), Signal()
        cycles = Signal(self._config.features.counter_width)
        m.d.comb += [
            self.requests.ready.eq(~self.responses.valid | self.responses.ready),
            taken.eq(self.requests.valid & self.requests.ready),
            write.eq(taken & request.write),
            is_command.eq(write & (request.address == Address.COMMAND)),
            *self._execute(is_command, request.data),
        ]
        m.d.sync += cycles.eq(cycles + self.running)
        with m.If(is_command & request.data[Command.CLEAR_COUNTERS]):
            m.d.sync += cycles.eq(0)
        for address, register in self._windows.items():
            with m.If(write & (request.address == address)):
                m.d.sync += register.eq(request.data)
        registers = self._status(self.units_busy) | self._windows
        with m.If(self.requests.ready):
            m.d.sync += self.responses.valid.eq(self.requests.valid & ~request.write)
        with m.If(taken):
            m.d.sync += self.responses.payload.eq(0)
            with m.Switch(request.address):
                for address, register in registers.items():
                    with m.Case(address):
                        m.d.sync += self.responses.payload.eq(register)
                with m.Case(Address.COUNTERS + Counter.CYCLES):
                    m.d.sync += self.responses.payload.eq(cycles)

    def _execute(self, is_command: Value, bits: Value) -> list:
        """Assignments of a write to the COMMAND register."""
        return [
            self.clear_fault.eq(is_command & bits[Command.CLEAR_FAULT]),
            self.acknowledge.eq(is_command & bits[Command.ACKNOWLEDGE]),
            self.scrub.eq(is_command & bits[Command.SCRUB]),
        ]

    @property
    def _windows(self) -> dict[Address, Value]:
        """The registers of the windows, by their address."""
        return {
            Address.HOST_BASE: self.windows.host_base,
            Address.HOST_LIMIT: self.windows.host_limit,
            Address.WEIGHT_BASE: self.windows.weight_base,
            Address.WEIGHT_LIMIT: self.windows.weight_limit,
        }

    def _status(self, busy: Value) -> dict[Address, Value]:
        """The other registers without counters, by their address."""
        flags = (self.running, self.faulted, self.waiting, self.scrubbing)
        status = Cat(*flags, Const(0, STATUS_UNITS_OFFSET - len(flags)), busy)
        return {Address.IDENTIFICATION: Const(IDENTIFICATION, 64), Address.STATUS: status}
