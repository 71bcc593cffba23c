"""Factories for every component of openmxu.rtl."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from functools import partial
from types import ModuleType

from amaranth.hdl import signed
from amaranth.lib import wiring

import openmxu.rtl
from openmxu.arch.config import Config
from openmxu.arch.isa import WORD_BYTES
from openmxu.arch.registers import ShellKind
from openmxu.arch.serial import MessageKind
from openmxu.rtl.activation.column_state import ColumnState
from openmxu.rtl.activation.operand_multiplier import OperandMultiplier
from openmxu.rtl.activation.pooler import Pooler
from openmxu.rtl.activation.requantizer import Requantizer
from openmxu.rtl.activation.scaler import Scaler
from openmxu.rtl.axi.burst_queue import BurstQueue
from openmxu.rtl.axi.burst_splitter import BurstSplitter
from openmxu.rtl.axi.lite_subordinate import LiteSubordinate
from openmxu.rtl.axi.read_manager import ReadManager
from openmxu.rtl.axi.shell import Shell
from openmxu.rtl.axi.top import Top
from openmxu.rtl.axi.write_manager import WriteManager
from openmxu.rtl.buffer.unified_buffer import UnifiedBuffer
from openmxu.rtl.common.address_generator import AddressGenerator
from openmxu.rtl.common.buffered_fifo import BufferedFIFO
from openmxu.rtl.common.register_slice import RegisterSlice, StreamRegister
from openmxu.rtl.common.run_walker import RunWalker
from openmxu.rtl.common.skew import Skew
from openmxu.rtl.common.stream_fifo import StreamFIFO
from openmxu.rtl.core import Core
from openmxu.rtl.dispatch.check.instruction_ranges import source_width
from openmxu.rtl.dispatch.check.plane_products import PlaneProducts
from openmxu.rtl.dispatch.command_queue import CommandQueue
from openmxu.rtl.dispatch.commands import matrix_walk
from openmxu.rtl.dispatch.configuration_registers import ConfigurationRegisters
from openmxu.rtl.dispatch.management import Management
from openmxu.rtl.fpga.ecp5_logic_multiplier import Ecp5LogicMultiplier
from openmxu.rtl.fpga.ecp5_multiplier import Ecp5Multiplier
from openmxu.rtl.fpga.ice40_bank import Ice40Bank
from openmxu.rtl.fpga.ice40_elements import Ice40Elements
from openmxu.rtl.fpga.logic_multiplier import LogicMultiplier
from openmxu.rtl.fpga.multiplier import Multiplier
from openmxu.rtl.fpga.product import Product
from openmxu.rtl.host.host_reader import HostReader
from openmxu.rtl.host.host_writer import HostWriter
from openmxu.rtl.host.row_packer import RowPacker
from openmxu.rtl.host.row_unpacker import RowUnpacker
from openmxu.rtl.host.row_walker import RowWalker
from openmxu.rtl.lite.core import LiteCore
from openmxu.rtl.lite.ice40_multipliers import Ice40Multipliers
from openmxu.rtl.lite.matrix_sequencer import LiteMatrixSequencer
from openmxu.rtl.lite.serial_requantizer import SerialRequantizer
from openmxu.rtl.matrix.processing_element import OPERAND_WIDTH, ProcessingElement
from openmxu.rtl.matrix.systolic_row import SystolicRow
from openmxu.rtl.serial.link.checksum import Checksum
from openmxu.rtl.serial.link.deframer import Deframer
from openmxu.rtl.serial.link.framer import Framer
from openmxu.rtl.serial.link.link import Link
from openmxu.rtl.serial.link.receiver import Receiver
from openmxu.rtl.serial.link.transmitter import Transmitter
from openmxu.rtl.serial.link.uart import UartReceiver, UartTransmitter
from openmxu.rtl.serial.memory_reader import MemoryReader
from openmxu.rtl.serial.memory_writer import MemoryWriter
from openmxu.rtl.serial.message_arbiter import MessageArbiter
from openmxu.rtl.serial.message_core import MessageCore
from openmxu.rtl.serial.message_router import MessageRouter
from openmxu.rtl.serial.messages import message_layout
from openmxu.rtl.serial.register_port import RegisterPort
from openmxu.rtl.serial.shared_reader import SharedReader
from openmxu.rtl.serial.shell import Shell as SerialShell
from openmxu.rtl.serial.short_message import ShortMessage
from openmxu.rtl.serial.uart_shell import UartShell
from openmxu.rtl.shell.bus_errors import BusErrors
from openmxu.rtl.shell.clocked import Clocked
from openmxu.rtl.shell.event_queue import EventQueue
from openmxu.rtl.shell.program_fetcher import ProgramFetcher
from openmxu.rtl.shell.register_file import RegisterFile
from openmxu.rtl.shell.shell_core import ShellCore
from openmxu.rtl.shell.small_program_fetcher import SmallProgramFetcher
from openmxu.rtl.shell.small_register_file import SmallRegisterFile
from openmxu.rtl.shell.watchdog import Watchdog
from openmxu.rtl.weights.memory_rows import MemoryRows
from openmxu.rtl.weights.transposer import Transposer

__all__ = ["ADDRESSES", "ON_BLOCKS", "SMALL", "SYSTEMS", "component_classes", "make", "modules"]

_FACTORIES: dict[type[wiring.Component], Callable[[Config], wiring.Component]] = {
    BurstQueue: lambda config: BurstQueue(config.host_address_width, config.host_data_bytes, 16),
    BurstSplitter: lambda config: BurstSplitter(config.host_address_width, config.host_data_bytes),
    EventQueue: lambda config: EventQueue(),
    LiteSubordinate: lambda config: LiteSubordinate(12),
    SmallProgramFetcher: lambda config: SmallProgramFetcher(
        config.host_address_width, min(config.host_data_bytes, WORD_BYTES)
    ),
    SmallRegisterFile: lambda config: SmallRegisterFile(config, ShellKind.AXI),
    LiteMatrixSequencer: lambda config: LiteMatrixSequencer(config, tag_delay=5),
    ProgramFetcher: lambda config: ProgramFetcher(config.host_address_width, config.host_data_bytes),
    ReadManager: lambda config: ReadManager(
        config.host_address_width, config.host_data_bytes, clients=("first", "second")
    ),
    WriteManager: lambda config: WriteManager(config.host_address_width, config.host_data_bytes),
    Checksum: lambda config: Checksum(),
    Framer: lambda config: Framer(),
    Deframer: lambda config: Deframer(),
    Receiver: lambda config: Receiver(),
    Transmitter: lambda config: Transmitter(100),
    Link: lambda config: Link(100),
    ShortMessage: lambda config: ShortMessage(message_layout(MessageKind.READ_HOST)),
    MessageArbiter: lambda config: MessageArbiter(("first", "second")),
    MessageRouter: lambda config: MessageRouter(
        {"first": (MessageKind.READ_REGISTER,), "second": (MessageKind.HOST_DATA, MessageKind.WEIGHT_DATA)}
    ),
    MemoryReader: lambda config: MemoryReader(config.host_address_width, config.host_data_bytes, MessageKind.READ_HOST),
    SharedReader: lambda config: SharedReader(
        config.host_address_width,
        config.host_data_bytes,
        {"first": MessageKind.READ_HOST, "second": MessageKind.READ_WEIGHTS},
    ),
    MemoryWriter: lambda config: MemoryWriter(config.host_address_width, config.host_data_bytes),
    RegisterPort: lambda config: RegisterPort(12),
    UartShell: lambda config: UartShell(config, clock=25_000_000, baud=1_000_000),
    UartReceiver: lambda config: UartReceiver(5),
    UartTransmitter: lambda config: UartTransmitter(5),
    SerialShell: lambda config: SerialShell(config, 100),
    Clocked: lambda config: Clocked(UartShell(config, clock=25_000_000, baud=1_000_000)),
    RegisterFile: lambda config: RegisterFile(config, ShellKind.AXI),
    BufferedFIFO: lambda config: BufferedFIFO(OPERAND_WIDTH, 4),
    RegisterSlice: lambda config: RegisterSlice(OPERAND_WIDTH),
    StreamRegister: lambda config: StreamRegister(OPERAND_WIDTH),
    CommandQueue: lambda config: CommandQueue(OPERAND_WIDTH, config.command_queue_depth),
    ColumnState: lambda config: ColumnState(signed(32), config.column_groups),
    ConfigurationRegisters: lambda config: ConfigurationRegisters(),
    OperandMultiplier: lambda config: OperandMultiplier(),
    PlaneProducts: lambda config: PlaneProducts(source_width(config)),
    Product: lambda config: Product(signed(OPERAND_WIDTH), signed(OPERAND_WIDTH)),
    AddressGenerator: lambda config: AddressGenerator(matrix_walk(config), context=OPERAND_WIDTH),
    ProcessingElement: lambda config: ProcessingElement(config.partial_sum_width),
    Pooler: lambda config: Pooler(config.column_groups),
    Requantizer: lambda config: Requantizer(config.column_groups),
    RowPacker: lambda config: RowPacker(row_bytes=config.size, beat_bytes=config.host_data_bytes),
    RowUnpacker: lambda config: RowUnpacker(row_bytes=config.size, beat_bytes=config.host_data_bytes),
    MemoryRows: lambda config: MemoryRows(row_bytes=config.size, beat_bytes=config.weight_data_bytes),
    RunWalker: lambda config: RunWalker(8, 2, context=OPERAND_WIDTH),
    RowWalker: lambda config: RowWalker(config.unified_buffer_address_width, range(config.unified_buffer_rows + 1)),
    Scaler: lambda config: Scaler(),
    SerialRequantizer: lambda config: SerialRequantizer(),
    Skew: lambda config: Skew(signed(OPERAND_WIDTH), config.size),
    ShellCore: lambda config: ShellCore(config, ShellKind.AXI),
    StreamFIFO: lambda config: StreamFIFO(OPERAND_WIDTH, config.weight_fifo_tiles),
    Multiplier: lambda config: Multiplier(),
    Ecp5Multiplier: lambda config: Ecp5Multiplier(),
    Ice40Elements: lambda config: Ice40Elements(config.partial_sum_width),
    Ice40Multipliers: lambda config: Ice40Multipliers(),
    LogicMultiplier: lambda config: LogicMultiplier(),
    Ecp5LogicMultiplier: lambda config: Ecp5LogicMultiplier(),
    SystolicRow: lambda config: SystolicRow(config, config.size - 1),
    Transposer: lambda config: Transposer(config, 4),
    Watchdog: lambda config: Watchdog(),
    UnifiedBuffer: lambda config: UnifiedBuffer(config, readers=("first", "second"), writers=("first", "second")),
}
"""Factories for components whose arguments are not just a configuration."""


ADDRESSES = {
    "narrow": {"host_address_width": 16, "weight_address_width": 17, "command_queue_depth": 16},
    "wide": {"host_address_width": 64, "weight_address_width": 64, "unified_buffer_rows": 1 << 15},
}
"""Address widths with which the full core is elaborated inside of shells."""

ON_BLOCKS = (Ecp5LogicMultiplier, Ecp5Multiplier, Ice40Bank, Ice40Elements, Ice40Multipliers)
"""Components made of FPGA blocks, which simulators do not know."""

SYSTEMS = (Core, LiteCore, ShellCore, Shell, Top, MessageCore, SerialShell, UartShell, Clocked)
"""Components that contain the whole core."""


SMALL: dict[str, Callable[[Config], wiring.Component]] = {
    "BusErrors": partial(BusErrors, is_small=True),
    "EventQueue": lambda config: EventQueue(0),
    "HostReader": partial(HostReader, is_small=True),
    "HostWriter": partial(HostWriter, is_small=True),
    "Management": partial(Management, is_small=True),
    "UnifiedBuffer": partial(UnifiedBuffer, readers=("first", "second"), writers=("first", "second"), is_small=True),
}
"""Factories for the small variants of units, for cores with few logic cells."""


def modules() -> list[ModuleType]:
    """All modules of openmxu.rtl and of the packages in it."""
    found = pkgutil.walk_packages(openmxu.rtl.__path__, "openmxu.rtl.")
    return [importlib.import_module(module.name) for module in found if not module.ispkg]


def component_classes() -> list[type[wiring.Component]]:
    """All components of openmxu.rtl, sorted by name."""
    classes = {
        item
        for module in modules()
        for _, item in inspect.getmembers(module, inspect.isclass)
        if issubclass(item, wiring.Component) and item.__module__ == module.__name__
    }
    return sorted(classes, key=lambda item: item.__name__)


def make(component: type[wiring.Component], config: Config) -> wiring.Component:
    """A component for ``config``; if it is for the lite profile, for that profile and the same sizes."""
    if component.__module__.startswith("openmxu.rtl.lite."):
        config = config.replace(profile="lite", weight_queue_depth=1)
    return _FACTORIES.get(component, component)(config)
