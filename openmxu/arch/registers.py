"""The memory-mapped registers through which a host drives a device, as data.

The shell's register file, the driver's constants, ``docs/registers.md`` and the C header derive from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, TypeVar

from openmxu.arch.config import Config
from openmxu.arch.events import (
    COMMANDS,
    CORE_STATUS,
    COUNTERS,
    STATUS_UNITS_OFFSET,
    Counter,
    EventKind,
    Management,
)
from openmxu.arch.isa import UNITS
from openmxu.arch.isa import WORD_BYTES as INSTRUCTION_BYTES
from openmxu.arch.profile import PROFILES

__all__ = [
    "ADDRESS_WIDTH",
    "CONFIGURATION",
    "CORE_WINDOW",
    "DEVICE_REGISTERS",
    "MAP_VERSION",
    "MINIMUM_RING_BYTES",
    "OFFSET_ALIGNMENT",
    "WORD_BYTES",
    "Access",
    "BusPort",
    "DeviceRegister",
    "Interrupt",
    "RegisterField",
    "ShellCommand",
    "ShellKind",
    "StatusBit",
    "configuration_of",
    "configuration_value",
    "device_register",
]

MAP_VERSION = 1
"""Version of the register map; incremented when a register moves or changes its meaning."""

WORD_BYTES = 4
"""Registers are accessed as words of this many bytes."""

ADDRESS_WIDTH = 12
"""Bits of a byte address within the registers."""

CORE_WINDOW = 0x800
"""Management register n of the core (:class:`~openmxu.arch.events.Management`) is the register at this offset + 8 n."""

OFFSET_ALIGNMENT = 4096
"""HOST_OFFSET and WEIGHT_OFFSET are multiples of this many bytes."""

MINIMUM_RING_BYTES = 2 * INSTRUCTION_BYTES
"""A ring holds one instruction less than its size."""


class Access(Enum):
    """How a host may access a register."""

    READ = "read"
    READ_WRITE = "read, write"
    WRITE = "write"
    CLEAR = "read, write 1 to clear"


class ShellKind(IntEnum):
    """Kinds of shells between core and host."""

    AXI = 1
    SERIAL = 2


class BusPort(IntEnum):
    """The port on which the bus answered an access with an error."""

    HOST_READ = 0
    HOST_WRITE = 1
    WEIGHTS = 2
    PROGRAM = 3


class ShellCommand(IntEnum):
    """Bit numbers of the COMMAND register; writing 1 acts once."""

    RESET = 0
    POP_EVENT = 1


class StatusBit(IntEnum):
    """Bit numbers of the STATUS register."""

    RESETTING = 0
    BUS_ERROR = 1
    TIME_OUT = 2
    FETCHING = 3
    RING_EMPTY = 4
    INTERRUPT = 5


class Interrupt(IntEnum):
    """Bit numbers of the interrupt registers; the first ones are those of :class:`~openmxu.arch.events.EventKind`."""

    HALT = EventKind.HALT
    FAULT = EventKind.FAULT
    HOST_SYNCHRONIZE = EventKind.HOST_SYNCHRONIZE
    INTERRUPT = EventKind.INTERRUPT
    DEBUG_TAG = EventKind.DEBUG_TAG
    BUS_ERROR = 5
    RING_EMPTY = 6
    TIME_OUT = 7


@dataclass(frozen=True)
class RegisterField:
    """Some bits of a register."""

    name: str
    offset: int
    width: int
    description: str


@dataclass(frozen=True)
class DeviceRegister:
    """One register.

    Attributes
    ----------
    name
        In upper case.
    offset
        Byte offset of its lowest byte; a multiple of its size.
    access
    description
        What it means.
    width
        32, or 64 bits: two words, the low one first.
    fields
        Its parts; bits without a field are 0. Empty when the register is one number.
    alignment
        It holds multiples of this power of two only: lower bits read as 0.
    address_parameter
        For an address or a part of memory, the name of the parameter that gives its largest width in bits: upper bits
        read as 0.
    initial
        Its value after the device's reset.
    parameter
        For a register that holds a parameter of :class:`~openmxu.arch.config.Config`, the parameter's name.
    """

    name: str
    offset: int
    access: Access
    description: str
    width: int = 32
    fields: tuple[RegisterField, ...] = ()
    alignment: int = 1
    address_parameter: str | None = None
    parameter: str | None = None
    initial: int = 0

    @property
    def is_wide(self) -> bool:
        """Whether it takes two words."""
        return self.width == 64

    @property
    def is_in_core(self) -> bool:
        """Whether it is a management register of the core."""
        return self.offset >= CORE_WINDOW

    def field(self, name: str) -> RegisterField:
        """The field ``name``; raises ``KeyError``."""
        for item in self.fields:
            if item.name == name:
                return item
        raise KeyError(f"{self.name} has no field {name!r}")

    def extract(self, name: str, value: int) -> int:
        """The field ``name`` of a register whose value is ``value``."""
        item = self.field(name)
        return value >> item.offset & ((1 << item.width) - 1)


CONFIGURATION = (
    "size",
    "unified_buffer_rows",
    "unified_buffer_banks",
    "accumulator_rows",
    "weight_fifo_tiles",
    "activation_lanes",
    "parameter_sets",
    "command_queue_depth",
    "weight_queue_depth",
    "host_data_bytes",
    "weight_data_bytes",
    "host_address_width",
    "weight_address_width",
    "profile",
)
"""The parameters of a configuration that can be read back, one register each."""


def configuration_value(config: Config, name: str) -> int:
    """The value in a parameter's register: the parameter itself; for the profile its number."""
    return PROFILES.index(config.features) if name == "profile" else getattr(config, name)


def configuration_of(values: Mapping[str, int]) -> Config:
    """The configuration whose registers have these values.

    Raises
    ------
    ValueError
        No configuration has these values.
    """
    number = values["profile"]
    if number >= len(PROFILES):
        raise ValueError(f"unknown profile number {number}")
    parameters: dict[str, Any] = {**values, "profile": PROFILES[number].name}
    return Config(**parameters)


_CONFIGURATION_OFFSET = 0x100

_PARAMETER_DESCRIPTIONS = {
    "profile": "`profile` of the configuration: "
    + ", ".join(f"{number}: {profile.name}" for number, profile in enumerate(PROFILES))
}


_Flag = TypeVar("_Flag", bound=IntEnum)


def _flags(descriptions: Mapping[_Flag, str]) -> tuple[RegisterField, ...]:
    """Fields of one bit each; a member's value is its bit number."""
    return tuple(RegisterField(bit.name, bit.value, 1, text) for bit, text in descriptions.items())


_INTERRUPTS = _flags(
    {
        Interrupt.HALT: "a program has ended",
        Interrupt.FAULT: "a program was stopped by a fault",
        Interrupt.HOST_SYNCHRONIZE: "a Host_Synchronize waits for ACKNOWLEDGE",
        Interrupt.INTERRUPT: "an Interrupt_Host was executed",
        Interrupt.DEBUG_TAG: "a Debug_Tag was dispatched",
        Interrupt.BUS_ERROR: "a memory access was answered with an error; dispatch has stopped",
        Interrupt.RING_EMPTY: "the last instruction in the ring has been fetched",
        Interrupt.TIME_OUT: "nothing went on for TIME_LIMIT cycles; dispatch has stopped",
    }
)

_SHELL = (
    DeviceRegister(
        "IDENTIFICATION",
        0x000,
        Access.READ,
        "`OPNMXU` in ASCII, lowest byte first, and above it the version of the core's interface",
        width=64,
    ),
    DeviceRegister(
        "SHELL",
        0x008,
        Access.READ,
        "what stands between core and host",
        fields=(
            RegisterField("KIND", 0, 8, "1: AXI, 2: serial"),
            RegisterField("VERSION", 8, 8, "version of this register map"),
        ),
    ),
    DeviceRegister(
        "STATUS",
        0x010,
        Access.READ,
        "what the shell does; CORE_STATUS tells what the core does",
        fields=(
            *_flags(
                {
                    StatusBit.RESETTING: "the core is being reset: its registers read as 0, writes to them are lost",
                    StatusBit.BUS_ERROR: "a memory access was answered with an error; dispatch is stopped until RESET",
                    StatusBit.TIME_OUT: "nothing went on for TIME_LIMIT cycles; dispatch is stopped until RESET",
                    StatusBit.FETCHING: "instructions are on their way from the ring to the core",
                    StatusBit.RING_EMPTY: "RING_TAIL is RING_HEAD",
                    StatusBit.INTERRUPT: "the interrupt output is set",
                }
            ),
            RegisterField("EVENTS", 8, 8, "events that wait in the event queue"),
        ),
    ),
    DeviceRegister(
        "COMMAND",
        0x014,
        Access.WRITE,
        "writing 1 to a bit acts once",
        fields=_flags(
            {
                ShellCommand.RESET: "resets the core and all that is on its way to it: memory accesses end as the "
                "bus demands, ENABLE becomes 0, events and a bus error are forgotten, and so are counters and windows; "
                "all other registers of the shell and the memories keep their contents",
                ShellCommand.POP_EVENT: "takes the first event from the event queue",
            }
        ),
    ),
    DeviceRegister(
        "CONTROL",
        0x018,
        Access.READ_WRITE,
        "what the shell is to do",
        fields=(
            RegisterField(
                "ENABLE",
                0,
                1,
                "fetch instructions from the ring. While 0, RING_HEAD and RING_TAIL are 0, and nothing is fetched; "
                "instructions that are on their way still go to the core",
            ),
        ),
    ),
    DeviceRegister("INTERRUPT_ENABLE", 0x020, Access.READ_WRITE, "what sets the interrupt output", fields=_INTERRUPTS),
    DeviceRegister("INTERRUPT_STATUS", 0x024, Access.CLEAR, "what has happened", fields=_INTERRUPTS),
    DeviceRegister(
        "FAULT",
        0x030,
        Access.READ,
        "the last fault",
        fields=(RegisterField("CODE", 0, 8, "fault code; 0 when there has been none since the last reset"),),
    ),
    DeviceRegister(
        "FAULT_INDEX",
        0x034,
        Access.READ,
        "index of the instruction of that fault in its program; after BUS_ERROR and TIME_OUT, of the instruction that "
        "dispatch had reached, which is the one to blame or a younger one",
    ),
    DeviceRegister(
        "EVENT",
        0x040,
        Access.READ,
        "the first event of the event queue. While the queue is full, programs wait",
        fields=(
            RegisterField("KIND", 0, 3, "kind of the event"),
            RegisterField("FAULT", 8, 8, "fault code"),
            RegisterField("VALID", 31, 1, "there is one"),
        ),
    ),
    DeviceRegister("EVENT_TAG", 0x044, Access.READ, "its tag"),
    DeviceRegister("EVENT_INDEX", 0x048, Access.READ, "index of its instruction in its program"),
    DeviceRegister(
        "BUS_ERROR",
        0x050,
        Access.READ,
        "the first error reply since the last reset",
        fields=(
            RegisterField("PENDING", 0, 1, "there was one"),
            RegisterField("PORT", 8, 2, "0: host read, 1: host write, 2: weights, 3: program"),
            RegisterField("RESPONSE", 16, 2, "2: SLVERR, 3: DECERR"),
        ),
    ),
    DeviceRegister("BUS_ERROR_ADDRESS", 0x058, Access.READ, "address of the burst that was answered so", width=64),
    DeviceRegister(
        "TIME_LIMIT",
        0x060,
        Access.READ_WRITE,
        "cycles, at least 1, in which a unit or the program fetch may work without a transfer and without an end of an "
        "instruction, before dispatch is stopped with TIME_OUT. Waiting for the host does not count. A device of the "
        "lite profile may wait for up to 65,536 cycles more",
        initial=1 << 28,
    ),
    DeviceRegister(
        "RING_BASE",
        0x080,
        Access.READ_WRITE,
        "bus address of the program ring in host memory, a multiple of 16; may change while ENABLE and FETCHING are 0",
        width=64,
        alignment=INSTRUCTION_BYTES,
        address_parameter="host_address_width",
    ),
    DeviceRegister(
        "RING_SIZE",
        0x088,
        Access.READ_WRITE,
        "bytes of the ring, a multiple of 16 and at least 32; may change while ENABLE and FETCHING are 0",
        alignment=INSTRUCTION_BYTES,
        address_parameter="host_address_width",
    ),
    DeviceRegister(
        "RING_HEAD",
        0x08C,
        Access.READ_WRITE,
        "offset in the ring of the byte behind the last instruction that may be fetched, a multiple of 16 below "
        "RING_SIZE. The ring is empty when it is RING_TAIL, so that it holds one instruction less than fit",
        alignment=INSTRUCTION_BYTES,
        address_parameter="host_address_width",
    ),
    DeviceRegister(
        "RING_TAIL",
        0x090,
        Access.READ,
        "offset in the ring of the next instruction to be fetched: the bytes before it may be overwritten",
        alignment=INSTRUCTION_BYTES,
        address_parameter="host_address_width",
    ),
    DeviceRegister(
        "HOST_OFFSET",
        0x0A0,
        Access.READ_WRITE,
        "added to the host addresses of programs, a multiple of 4096; may change while no program runs",
        width=64,
        alignment=OFFSET_ALIGNMENT,
        address_parameter="host_address_width",
    ),
    DeviceRegister(
        "WEIGHT_OFFSET",
        0x0A8,
        Access.READ_WRITE,
        "added to the weight addresses of programs, a multiple of 4096; may change while no program runs",
        width=64,
        alignment=OFFSET_ALIGNMENT,
        address_parameter="weight_address_width",
    ),
)

_CORE_DESCRIPTIONS = {
    Management.STATUS: ("CORE_STATUS", Access.READ, "what the core does"),
    Management.COMMAND: ("CORE_COMMAND", Access.WRITE, "writing 1 to a bit acts once"),
    Management.HOST_BASE: ("HOST_BASE", Access.READ_WRITE, "first host address that programs may use"),
    Management.HOST_LIMIT: ("HOST_LIMIT", Access.READ_WRITE, "first host address behind those"),
    Management.WEIGHT_BASE: ("WEIGHT_BASE", Access.READ_WRITE, "first weight address that programs may use"),
    Management.WEIGHT_LIMIT: ("WEIGHT_LIMIT", Access.READ_WRITE, "first weight address behind those"),
}
_CORE_FIELDS = {
    Management.STATUS: (
        *_flags(CORE_STATUS),
        RegisterField(
            "UNITS",
            STATUS_UNITS_OFFSET,
            len(UNITS),
            f"busy units, lowest bit first: {', '.join(unit.name.lower() for unit in UNITS)}",
        ),
    ),
    Management.COMMAND: _flags(COMMANDS),
}


def _core_registers() -> tuple[DeviceRegister, ...]:
    registers = [
        DeviceRegister(name, CORE_WINDOW + 8 * address, access, text, width=64, fields=_CORE_FIELDS.get(address, ()))
        for address, (name, access, text) in _CORE_DESCRIPTIONS.items()
    ]
    registers += [
        DeviceRegister(
            f"COUNTER_{counter.name}",
            CORE_WINDOW + 8 * (Management.COUNTERS + counter),
            Access.READ,
            COUNTERS[counter],
            width=64,
        )
        for counter in Counter
    ]
    return tuple(registers)


DEVICE_REGISTERS: tuple[DeviceRegister, ...] = (
    *_SHELL,
    *(
        DeviceRegister(
            f"CONFIG_{name.upper()}",
            _CONFIGURATION_OFFSET + WORD_BYTES * index,
            Access.READ,
            _PARAMETER_DESCRIPTIONS.get(name, f"`{name}` of the configuration"),
            parameter=name,
        )
        for index, name in enumerate(CONFIGURATION)
    ),
    *_core_registers(),
)
"""Every register, in the order of their offsets. Offsets between them read as 0 and ignore writes."""

_BY_NAME = {register.name: register for register in DEVICE_REGISTERS}


def device_register(name: str) -> DeviceRegister:
    """The register ``name``; raises ``KeyError``."""
    return _BY_NAME[name]
