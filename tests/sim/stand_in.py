"""A small component with the core's signature, for tests of the device without the core.

It executes one instruction after the other, in simplified ways:

- Read_Host_Memory copies ``rows`` beats at ``host`` to beat number ``unified_buffer`` of host memory; the write's data
  goes before its request. Read_Weights copies ``tiles`` beats at ``weights`` to address 0; the request goes first. Beat
  i of a copy is also written to unified buffer row i, and its bytes as signed numbers to accumulator row i.
- Debug_Tag, Host_Synchronize and Halt send their events; Host_Synchronize waits for the acknowledgement.
- Synchronize hangs, with the matrix unit busy; with ``units=1`` the management port hangs too. Interrupt_Host withdraws
  a valid before it is taken.
- Everything else is Nop, and unknown opcodes fault.

The counters HOST_READ_BYTES and RETIRED_OTHER (all instructions) work; HOST_READ_BUSY is the limit of the host window.
"""

from __future__ import annotations

from pathlib import Path

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory

from openmxu.arch.config import Config
from openmxu.arch.events import STATUS_UNITS_OFFSET, Command, Counter, EventKind, Management
from openmxu.arch.faults import FaultCode
from openmxu.arch.isa import FORMATS, Opcode, Unit
from openmxu.rtl.common.interfaces import CoreSignature
from openmxu.sim.verilator import CORE, Design

CONFIG = Config(size=8, unified_buffer_rows=64, accumulator_rows=16)


class StandIn(wiring.Component):
    """The component that the module describes."""

    def __init__(self, config: Config) -> None:
        assert config.size == config.host_data_bytes == config.weight_data_bytes
        self.config = config
        super().__init__(CoreSignature(config))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word, opcode = Signal(128), Signal(8)
        index, retired, read_bytes, limit = Signal(32), Signal(64), Signal(64), Signal(64)
        faulted, acknowledged, beats, row = Signal(), Signal(), Signal(24), Signal(24)
        from_weights = Signal()
        busy, hanging = Signal(), Signal()
        m.d.comb += [opcode.eq(word[:8]), from_weights.eq(opcode == Opcode.READ_WEIGHTS)]
        self._connect_management(m, busy, hanging, faulted, acknowledged, retired, read_bytes, limit)
        self._connect_copy(m, word, from_weights, row, beats, read_bytes)

        count = Mux(from_weights, word[16:40], word[40:64])
        event = self.events.payload
        m.d.comb += [event.index.eq(index), event.tag.eq(word[32:64])]
        m.d.comb += busy.eq(1)
        with m.FSM():
            with m.State("FETCH"):
                m.d.comb += [self.instructions.ready.eq(1), busy.eq(0)]
                m.d.sync += [word.eq(self.instructions.payload), row.eq(0)]
                with m.If(self.instructions.valid & ~faulted):
                    m.next = "EXECUTE"
            with m.State("EXECUTE"):
                m.d.sync += beats.eq(count)
                m.next = "RETIRE"
                with m.Switch(opcode):
                    with m.Case(Opcode.READ_HOST_MEMORY, Opcode.READ_WEIGHTS):
                        m.next = "READ_REQUEST"
                    with m.Case(Opcode.HALT, Opcode.DEBUG_TAG, Opcode.HOST_SYNCHRONIZE, Opcode.INTERRUPT_HOST):
                        m.next = "EVENT"
                    with m.Case(Opcode.SYNCHRONIZE):
                        m.next = "HANG"
                    with m.Case(*(format.opcode for format in FORMATS)):
                        pass
                    with m.Default():
                        m.next = "FAULT"
            with m.State("READ_REQUEST"):
                m.d.comb += [
                    self.weights.request.valid.eq(from_weights),
                    self.host_read.request.valid.eq(~from_weights),
                ]
                with m.If(Mux(from_weights, self.weights.request.ready, self.host_read.request.ready)):
                    m.next = "DATA"
                    with m.If(from_weights):
                        m.next = "WRITE_REQUEST"
            with m.State("WRITE_REQUEST"):
                m.d.comb += self.host_write.request.valid.eq(1)
                with m.If(self.host_write.request.ready):
                    m.next = "DONE"
                    with m.If(from_weights):
                        m.next = "DATA"
            with m.State("DATA"):
                with m.If(self.host_write.data.valid & self.host_write.data.ready):
                    m.d.sync += row.eq(row + 1)
                    with m.If(self.host_write.data.payload.last):
                        m.next = "WRITE_REQUEST"
                        with m.If(from_weights):
                            m.next = "DONE"
                    m.d.comb += self._copying.eq(1)
                m.d.comb += self._in_data.eq(1)
            with m.State("DONE"):
                m.d.comb += self.host_write.done.ready.eq(1)
                with m.If(self.host_write.done.valid):
                    m.next = "RETIRE"
            with m.State("EVENT"):
                m.d.comb += self.events.valid.eq(1)
                with m.Switch(opcode):
                    for kind in (EventKind.HALT, EventKind.DEBUG_TAG, EventKind.HOST_SYNCHRONIZE):
                        with m.Case(Opcode[kind.name]):
                            m.d.comb += event.kind.eq(kind)
                with m.If(self.events.ready):
                    m.next = "RETIRE"
                    with m.If(opcode == Opcode.HOST_SYNCHRONIZE):
                        m.next = "ACKNOWLEDGE"
                with m.Elif(opcode == Opcode.INTERRUPT_HOST):
                    m.next = "RETIRE"
            with m.State("ACKNOWLEDGE"), m.If(acknowledged):
                m.next = "RETIRE"
            with m.State("HANG"):
                m.d.comb += hanging.eq(1)
                with m.If(word[16]):
                    m.d.comb += self.management.ready.eq(0)
            with m.State("FAULT"):
                m.d.comb += [self.events.valid.eq(1), event.kind.eq(EventKind.FAULT)]
                m.d.comb += event.fault.eq(FaultCode.UNKNOWN_OPCODE)
                m.d.sync += faulted.eq(1)
                with m.If(self.events.ready):
                    m.d.sync += index.eq(0)
                    m.next = "FETCH"
            with m.State("RETIRE"):
                m.d.sync += [index.eq(Mux(opcode == Opcode.HALT, 0, index + 1)), retired.eq(retired + 1)]
                m.next = "FETCH"
        return m

    def _connect_copy(self, m, word, from_weights, row, beats, read_bytes) -> None:
        self._copying, self._in_data = Signal(), Signal()
        write = self.host_write
        data = Signal(8 * self.config.size)
        m.d.comb += [
            self.host_read.request.payload.address.eq(word[64:]),
            self.host_read.request.payload.beats.eq(beats),
            self.weights.request.payload.address.eq(word[64:]),
            self.weights.request.payload.beats.eq(beats),
            write.request.payload.address.eq(Mux(from_weights, 0, word[16:40] * self.config.size)),
            write.request.payload.beats.eq(beats),
            data.eq(Mux(from_weights, self.weights.data.payload, self.host_read.data.payload)),
            write.data.payload.data.eq(data),
            write.data.payload.strobe.eq(-1),
            write.data.payload.last.eq(row == beats - 1),
            write.data.valid.eq(self._in_data & Mux(from_weights, self.weights.data.valid, self.host_read.data.valid)),
            self.weights.data.ready.eq(self._in_data & from_weights & write.data.ready),
            self.host_read.data.ready.eq(self._in_data & ~from_weights & write.data.ready),
        ]
        with m.If(self._copying):
            m.d.sync += read_bytes.eq(read_bytes + self.config.size)
        self._add_memories(m, row, data)

    def _add_memories(self, m, row, data) -> None:
        config = self.config
        m.submodules.unified_buffer = unified_buffer = Module()
        for number in range(config.unified_buffer_banks):
            bank = Module()
            unified_buffer.submodules[f"bank_{number}"] = bank
            depth = config.unified_buffer_rows // config.unified_buffer_banks
            memory = Memory(shape=8 * config.size, depth=depth, init=[])
            _write(bank, "memory", memory, self._copying, row, number, config.unified_buffer_banks, data)
        m.submodules.accumulators = accumulators = Module()
        for number in range(config.size):
            column = Module()
            accumulators.submodules[f"column_{number}"] = column
            for half, name in enumerate(("even", "odd")):
                memory = Memory(shape=32, depth=config.accumulator_rows // 2, init=[])
                value = data.word_select(number, 8).as_signed()
                _write(column, name, memory, self._copying, row, half, 2, value)

    def _connect_management(self, m, busy, hanging, faulted, acknowledged, retired, read_bytes, limit) -> None:
        request, response = self.management, self.management_response
        m.d.comb += request.ready.eq(~response.valid)
        m.d.sync += acknowledged.eq(0)
        with m.If(response.ready):
            m.d.sync += response.valid.eq(0)
        with m.If(request.valid & request.ready):
            address, value = request.payload.address, request.payload.data
            with m.If(~request.payload.write):
                m.d.sync += response.valid.eq(1)
                unit_bits = Cat(*(hanging & (unit == Unit.MATRIX) for unit in Unit))
                registers = {
                    Management.STATUS: Cat(busy, faulted) | (unit_bits << STATUS_UNITS_OFFSET),
                    Management.COUNTERS + Counter.HOST_READ_BYTES: read_bytes,
                    Management.COUNTERS + Counter.RETIRED_OTHER: retired,
                    Management.COUNTERS + Counter.HOST_READ_BUSY: limit,
                }
                m.d.sync += response.payload.eq(0)
                with m.Switch(address):
                    for number, register in registers.items():
                        with m.Case(number):
                            m.d.sync += response.payload.eq(register)
            with m.Elif(address == Management.HOST_LIMIT):
                m.d.sync += limit.eq(value)
            with m.Elif(address == Management.COMMAND):
                m.d.sync += acknowledged.eq(value[Command.ACKNOWLEDGE])
                with m.If(value[Command.CLEAR_FAULT]):
                    m.d.sync += faulted.eq(0)
                with m.If(value[Command.CLEAR_COUNTERS]):
                    m.d.sync += [retired.eq(0), read_bytes.eq(0)]


def _write(m, name, memory, enable, row, number, banks, value) -> None:
    """Write row ``row`` if it belongs to bank ``number``."""
    m.submodules[name] = memory
    port = memory.write_port()
    bits = (banks - 1).bit_length()
    m.d.comb += [port.addr.eq(row >> bits), port.data.eq(value), port.en.eq(enable & (row[:bits] == number))]


DESIGN = Design(
    make=StandIn,
    sources=(*CORE.sources, Path(__file__)),
    unified_buffer=CORE.unified_buffer,
    accumulators=CORE.accumulators,
)
