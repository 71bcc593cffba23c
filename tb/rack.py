"""Test racks: the designs that are compiled for the testbenches, with several units side by side in one build."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from amaranth.hdl import Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped

from openmxu.arch.config import Config
from openmxu.arch.registers import ADDRESS_WIDTH, ShellKind
from openmxu.arch.serial import MessageKind
from openmxu.rtl.activation.activation_sequencer import ActivationSequencer
from openmxu.rtl.activation.activation_unit import ActivationUnit
from openmxu.rtl.activation.element_fetcher import ElementFetcher
from openmxu.rtl.activation.operand_multiplier import OperandMultiplier
from openmxu.rtl.activation.parameter_memory import ParameterMemory
from openmxu.rtl.activation.pooler import Pooler
from openmxu.rtl.activation.requantizer import Requantizer
from openmxu.rtl.activation.result_writer import ResultWriter
from openmxu.rtl.activation.row_loader import RowLoader
from openmxu.rtl.activation.scaler import Scaler
from openmxu.rtl.activation.table_memory import TableMemory
from openmxu.rtl.axi.burst_splitter import BurstSplitter
from openmxu.rtl.axi.lite_subordinate import LiteSubordinate
from openmxu.rtl.axi.read_manager import ReadManager
from openmxu.rtl.axi.write_manager import WriteManager
from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from openmxu.rtl.common.address_generator import AddressGenerator, walk_layout
from openmxu.rtl.common.buffered_fifo import BufferedFIFO
from openmxu.rtl.common.register_slice import RegisterSlice, StreamRegister
from openmxu.rtl.common.run_walker import RunWalker
from openmxu.rtl.common.skew import Skew
from openmxu.rtl.common.stream_fifo import StreamFIFO
from openmxu.rtl.core import Core
from openmxu.rtl.dispatch.check.instruction_check import InstructionCheck
from openmxu.rtl.dispatch.check.instruction_ranges import source_width
from openmxu.rtl.dispatch.check.memory_range import MemoryRange
from openmxu.rtl.dispatch.check.plane_products import PlaneProducts
from openmxu.rtl.dispatch.command_queue import CommandQueue
from openmxu.rtl.dispatch.command_queues import CommandQueues
from openmxu.rtl.dispatch.commands import activation_walk, matrix_walk
from openmxu.rtl.dispatch.dispatcher import Dispatcher
from openmxu.rtl.dispatch.management import Management
from openmxu.rtl.dispatch.scoreboard import Scoreboard
from openmxu.rtl.dispatch.scrubber import Scrubber
from openmxu.rtl.dispatch.tile_ledger import TileLedger
from openmxu.rtl.fpga.target import Family, Target
from openmxu.rtl.host.burst_generator import BurstGenerator
from openmxu.rtl.host.host_reader import HostReader
from openmxu.rtl.host.host_writer import HostWriter
from openmxu.rtl.host.row_packer import RowPacker
from openmxu.rtl.host.row_unpacker import RowUnpacker
from openmxu.rtl.host.row_walker import RowWalker
from openmxu.rtl.lite.accumulators import LiteAccumulators
from openmxu.rtl.lite.array import LiteArray
from openmxu.rtl.lite.compact_activation_unit import CompactActivationUnit
from openmxu.rtl.lite.serial_requantizer import SerialRequantizer
from openmxu.rtl.lite.weights import LiteWeights
from openmxu.rtl.matrix.accumulators import Accumulators
from openmxu.rtl.matrix.matrix_sequencer import MatrixSequencer
from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH, ProcessingElement
from openmxu.rtl.matrix.systolic_array import SystolicArray
from openmxu.rtl.matrix.systolic_data_setup import SystolicDataSetup
from openmxu.rtl.serial.link.deframer import Deframer
from openmxu.rtl.serial.link.framer import Framer
from openmxu.rtl.serial.link.link import Link
from openmxu.rtl.serial.link.uart import UartReceiver, UartTransmitter
from openmxu.rtl.serial.memory_reader import MemoryReader
from openmxu.rtl.serial.memory_writer import MemoryWriter
from openmxu.rtl.serial.message_arbiter import MessageArbiter
from openmxu.rtl.serial.message_router import MessageRouter
from openmxu.rtl.serial.messages import message_layout
from openmxu.rtl.serial.register_port import RegisterPort
from openmxu.rtl.serial.short_message import ShortMessage
from openmxu.rtl.shell.bus_errors import BusErrors
from openmxu.rtl.shell.event_queue import EventQueue
from openmxu.rtl.shell.program_fetcher import ProgramFetcher
from openmxu.rtl.shell.register_file import RegisterFile
from openmxu.rtl.shell.small_program_fetcher import SmallProgramFetcher
from openmxu.rtl.shell.small_register_file import SmallRegisterFile
from openmxu.rtl.shell.watchdog import Watchdog
from openmxu.rtl.weights.memory_rows import MemoryRows
from openmxu.rtl.weights.transposer import Transposer
from openmxu.rtl.weights.weight_fetcher import WeightFetcher
from openmxu.rtl.weights.weight_fifo import WeightFIFO
from openmxu.rtl.weights.weight_shifter import WeightShifter
from tb.cells import OnTarget
from tb.formal.axi.watch import WatchedTop

__all__ = [
    "AXI_ADDRESS_WIDTH",
    "AXI_CLIENTS",
    "AXI_DATA_BYTES",
    "BEAT_BYTES",
    "BUFFERED_FIFO_DEPTH",
    "EVENT_QUEUE_DEPTHS",
    "FAR_OUTPUTS",
    "FAR_WALKS",
    "FETCHER_DEPTH",
    "FIFO_DEPTHS",
    "LANE_WIDTH",
    "RACKS",
    "READERS",
    "RETRANSMIT_CYCLES",
    "ROUTES",
    "ROWS_WIDTH",
    "SMALL_FETCHER_BYTES",
    "UART_DIVISORS",
    "WATCHDOG_GRAIN",
    "WRITERS",
    "Rack",
]

READERS = ("matrix", "parameters", "host")
"""Readers of the unified buffer under test, highest priority first."""

WRITERS = ("results", "host")
"""Writers of the unified buffer under test, highest priority first."""

BEAT_BYTES = (4, 8, 16)
"""Bus widths with which row packers and unpackers are tested, independent of the configuration."""

ROWS_WIDTH = 5
LANE_WIDTH = 2
"""Width in bits of the row count and of the lane number in a run of those packers and unpackers."""

FIFO_DEPTHS = (1, 2, 5)
"""Depths with which the stream FIFO is tested."""

BUFFERED_FIFO_DEPTH = 4
"""Depth with which the FIFO with its oldest payload in a register is tested."""

FAR_OUTPUTS = 2100
"""Outputs of the walks below; with 255 positions between two outputs, the last one lies beyond 2**19."""

FAR_WALKS = {
    name: walk_layout(address_width=10, most_rows=40, most_outputs=FAR_OUTPUTS, windows=windows)
    for name, windows in (("far_walker", False), ("far_walker_windows", True))
}
"""Layouts of walks over a small plane that reach far beyond it."""

AXI_ADDRESS_WIDTH = 18
"""Address width in bits of the AXI units under test."""

AXI_DATA_BYTES = (4, 16, 64)
"""Bus widths in bytes with which they are tested: 256 beats of the first are less than 4 KiB, of the second 4 KiB."""

AXI_CLIENTS = ("first", "second")
"""Clients of the read manager under test."""

SMALL_FETCHER_BYTES = (4, 16)
"""Bus widths in bytes with which the small program fetcher is tested."""

MOST_BEATS = 4000
"""Maximum number of beats in a request for bursts."""

FETCHER_DEPTH = 8
"""Number of instructions that the program fetcher under test holds."""

EVENT_QUEUE_DEPTHS = (0, 3)
"""Number of events that the event queues under test hold."""

WATCHDOG_GRAIN = 8
"""Resolution in cycles of the coarse watchdog under test."""

RETRANSMIT_CYCLES = 3000
"""Retransmission timeout of the serial link under test."""

ROUTES = {
    "first": (MessageKind.READ_REGISTER, MessageKind.WRITE_REGISTER),
    "second": (MessageKind.HOST_DATA,),
}
"""Message kinds of each output of the message router under test."""

UART_DIVISORS = (4, 9)
"""Cycles per bit of the UARTs under test."""


Unit = wiring.Component | OnTarget


def _partly_in_logic(config: Config) -> Target:
    """An ECP5 with too few multiplier blocks for the last row of an array and the last element above it."""
    return Target(Family.ECP5, array_multipliers=config.size * (config.size - 1) - 1)


def _data_units(config: Config) -> dict[str, Unit]:
    width = config.partial_sum_width
    buffer = partial(UnifiedBuffer, config, readers=READERS, writers=WRITERS)
    return {
        "processing_element": ProcessingElement(width),
        "processing_element_ecp5": OnTarget(ProcessingElement(width), Target(Family.ECP5)),
        "processing_element_in_logic": ProcessingElement(width, in_logic=True),
        "processing_element_in_logic_ecp5": OnTarget(ProcessingElement(width, in_logic=True), Target(Family.ECP5)),
        "skew": Skew(signed(OPERAND_WIDTH), config.size),
        "systolic_array": SystolicArray(config),
        "systolic_array_ecp5": OnTarget(SystolicArray(config), _partly_in_logic(config)),
        "systolic_array_ice40": OnTarget(SystolicArray(config), Target(Family.ICE40)),
        "systolic_data_setup": SystolicDataSetup(config),
        "unified_buffer": buffer(is_small=False),
        "unified_buffer_ice40": OnTarget(buffer(is_small=False), Target(Family.ICE40)),
        "unified_buffer_small": buffer(is_small=True),
        "unified_buffer_small_ice40": OnTarget(buffer(is_small=True), Target(Family.ICE40)),
        "lite_array": LiteArray(config),
        "lite_array_ecp5": OnTarget(LiteArray(config), _partly_in_logic(config)),
        "lite_array_ice40": OnTarget(LiteArray(config), Target(Family.ICE40)),
        "lite_weights": LiteWeights(config),
        "matrix_sequencer": MatrixSequencer(config),
        "accumulators": Accumulators(config),
        "lite_accumulators": LiteAccumulators(config),
        "burst_generator": BurstGenerator(config),
        "host_reader": HostReader(config),
        "host_reader_small": HostReader(config, is_small=True),
        "host_writer": HostWriter(config),
        "host_writer_small": HostWriter(config, is_small=True),
        "weight_fetcher": WeightFetcher(config),
        "weight_fifo": WeightFIFO(config),
        "weight_shifter": WeightShifter(config),
        "transposer": Transposer(config, WeightShifter.latency - 1),
        "address_generator": AddressGenerator(matrix_walk(config)),
        "address_generator_windows": AddressGenerator(activation_walk(config)),
        **{name: AddressGenerator(layout) for name, layout in FAR_WALKS.items()},
        "row_walker": RowWalker(config.unified_buffer_address_width, range(config.unified_buffer_rows + 1)),
        **{f"stream_fifo_{depth}": StreamFIFO(8, depth) for depth in FIFO_DEPTHS},
        "buffered_fifo": BufferedFIFO(8, BUFFERED_FIFO_DEPTH),
        "run_walker": RunWalker(ROWS_WIDTH, LANE_WIDTH),
        **{f"row_packer_{beat}": RowPacker(row_bytes=config.size, beat_bytes=beat) for beat in BEAT_BYTES},
        **{f"row_unpacker_{beat}": RowUnpacker(row_bytes=config.size, beat_bytes=beat) for beat in BEAT_BYTES},
        **{f"memory_rows_{beat}": MemoryRows(row_bytes=config.size, beat_bytes=beat) for beat in BEAT_BYTES},
    }


def _activation_units(config: Config) -> dict[str, wiring.Component]:
    groups = config.column_groups
    return {
        "parameter_memory": ParameterMemory(config),
        "table_memory": TableMemory(config),
        "row_loader": RowLoader(config),
        "pooler": Pooler(groups),
        "pooler_ecp5": OnTarget(Pooler(groups), Target(Family.ECP5)),
        "operand_multiplier": OperandMultiplier(),
        "operand_multiplier_ecp5": OnTarget(OperandMultiplier(), Target(Family.ECP5)),
        "scaler": Scaler(),
        "scaler_ecp5": OnTarget(Scaler(), Target(Family.ECP5)),
        "requantizer": Requantizer(groups),
        "requantizer_ecp5": OnTarget(Requantizer(groups), Target(Family.ECP5)),
        "element_fetcher": ElementFetcher(config),
        "activation_sequencer": ActivationSequencer(config),
        "result_writer": ResultWriter(config),
        "activation_unit": ActivationUnit(config),
        "serial_requantizer": SerialRequantizer(),
        "compact_activation_unit": CompactActivationUnit(config),
    }


def _control_units(config: Config) -> dict[str, wiring.Component]:
    return {
        "scoreboard": Scoreboard(config),
        "plane_products": PlaneProducts(source_width(config)),
        "memory_range": MemoryRange(config),
        "memory_range_ecp5": OnTarget(MemoryRange(config), Target(Family.ECP5)),
        "instruction_check": InstructionCheck(config),
        "instruction_check_ecp5": OnTarget(InstructionCheck(config), Target(Family.ECP5)),
        "tile_ledger": TileLedger(config),
        "command_queue": CommandQueue(8, config.command_queue_depth),
        "command_queues": CommandQueues(config),
        "dispatcher": Dispatcher(config),
        "management": Management(config),
        "management_small": Management(config, is_small=True),
        "scrubber": Scrubber(config),
        "watchdog": Watchdog(),
        "coarse_watchdog": Watchdog(WATCHDOG_GRAIN),
    }


def _axi_units(config: Config) -> dict[str, wiring.Component]:
    width = AXI_ADDRESS_WIDTH
    return {
        **{f"burst_splitter_{beat}": BurstSplitter(width, beat, MOST_BEATS) for beat in AXI_DATA_BYTES},
        **{
            f"read_manager_{beat}": ReadManager(
                width,
                beat,
                clients=AXI_CLIENTS,
                whole=AXI_CLIENTS[:1],
                most_beats=MOST_BEATS,
                outstanding=5,
                beats_ahead=128,
            )
            for beat in AXI_DATA_BYTES
        },
        **{
            f"write_manager_{beat}": WriteManager(width, beat, most_beats=MOST_BEATS, outstanding=5)
            for beat in AXI_DATA_BYTES
        },
        **{
            f"program_fetcher_{beat}": ProgramFetcher(width, beat, depth=FETCHER_DEPTH, chunk=FETCHER_DEPTH // 2)
            for beat in AXI_DATA_BYTES
        },
        "register_slice": RegisterSlice(8),
        "register_slice_half": RegisterSlice(8, half_rate=True),
        "stream_register": StreamRegister(8),
        **{f"event_queue_{depth}": EventQueue(depth) for depth in EVENT_QUEUE_DEPTHS},
        "lite_subordinate": LiteSubordinate(ADDRESS_WIDTH),
        "register_file": RegisterFile(config, ShellKind.AXI),
        "small_register_file": SmallRegisterFile(
            config.replace(host_address_width=AXI_ADDRESS_WIDTH, weight_address_width=AXI_ADDRESS_WIDTH), ShellKind.AXI
        ),
        "bus_errors": BusErrors(config),
        "bus_errors_small": BusErrors(config, is_small=True),
        **{
            f"small_program_fetcher_{beat}": SmallProgramFetcher(width, beat, depth=FETCHER_DEPTH)
            for beat in SMALL_FETCHER_BYTES
        },
    }


def _serial_units(config: Config) -> dict[str, wiring.Component]:
    width = AXI_ADDRESS_WIDTH
    return {
        "framer": Framer(),
        "deframer": Deframer(),
        "link": Link(RETRANSMIT_CYCLES),
        "short_message": ShortMessage(message_layout(MessageKind.READ_HOST)),
        "message_arbiter": MessageArbiter(AXI_CLIENTS),
        "message_router": MessageRouter(ROUTES),
        **{f"memory_reader_{beat}": MemoryReader(width, beat, MessageKind.READ_HOST) for beat in AXI_DATA_BYTES},
        **{f"memory_writer_{beat}": MemoryWriter(width, beat) for beat in AXI_DATA_BYTES},
        "register_port": RegisterPort(ADDRESS_WIDTH),
        **{f"uart_transmitter_{divisor}": UartTransmitter(divisor) for divisor in UART_DIVISORS},
        **{f"uart_receiver_{divisor}": UartReceiver(divisor) for divisor in UART_DIVISORS},
    }


RACKS: dict[str, Callable[[Config], dict[str, Unit]]] = {
    "data": _data_units,
    "activation": _activation_units,
    "control": _control_units,
    "selftests": lambda config: {"stream_fifo": StreamFIFO(8, 2)},
    "core": lambda config: {"core": Core(config)},
    "axi": _axi_units,
    "serial": _serial_units,
    "axi_shell": lambda config: {"axi": WatchedTop(config)},
}
"""The units of each rack, by name."""


class Rack(wiring.Component):
    """Units side by side that share only clock and reset; port ``p`` of unit ``u`` is port ``u__p``.

    Parameters
    ----------
    kind
        A key of :data:`RACKS`.
    config
        Configuration of the units.
    """

    def __init__(self, kind: str, config: Config) -> None:
        self._units = RACKS[kind](config)
        self._components = {
            name: unit.component if isinstance(unit, OnTarget) else unit for name, unit in self._units.items()
        }
        super().__init__({name: Out(unit.signature) for name, unit in self._components.items()})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for name, unit in self._units.items():
            m.submodules[name] = unit
            connect(m, flipped(getattr(self, name)), self._components[name])
        return m
