"""The AXI shell: registers and memories on AXI."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from openmxu.arch.config import Config
from openmxu.arch.registers import ADDRESS_WIDTH, ShellKind
from openmxu.rtl.axi.channels import LiteSignature, ReadChannelsSignature, WriteChannelsSignature
from openmxu.rtl.axi.lite_subordinate import LiteSubordinate
from openmxu.rtl.axi.read_manager import ReadManager
from openmxu.rtl.axi.write_manager import WriteManager
from openmxu.rtl.common.interfaces import most_host_beats, most_weight_beats
from openmxu.rtl.shell.bus_errors import HOST_CLIENTS, WEIGHT_CLIENTS
from openmxu.rtl.shell.shell_core import ShellCore

__all__ = ["Shell"]


class Shell(wiring.Component):
    """A core that a host drives through the registers of :mod:`openmxu.arch.registers`, and that fetches programs, data
    and weights by itself.

    An error reply of a memory stops dispatch; instructions that have begun run to their end with the data that came.
    During a reset of the core, all bursts in flight still end as AXI demands.

    Parameters
    ----------
    config
        Sizes of the core.
    outstanding
        Largest number of bursts in flight on each memory's read or write channels.

    Members
    -------
    control
        Registers.
    host_read, host_write
        Host memory.
    weights
        Weight memory.
    interrupt
        Set while an enabled interrupt is pending.
    """

    def __init__(self, config: Config, *, outstanding: int = 16) -> None:
        self._config = config
        self._outstanding = outstanding
        host = (config.host_address_width, config.host_data_bytes)
        super().__init__(
            {
                "control": In(LiteSignature(ADDRESS_WIDTH)),
                "host_read": Out(ReadChannelsSignature(*host)),
                "host_write": Out(WriteChannelsSignature(*host)),
                "weights": Out(ReadChannelsSignature(config.weight_address_width, config.weight_data_bytes)),
                "interrupt": Out(1),
            }
        )

    @property
    def config(self) -> Config:
        """Sizes of the core."""
        return self._config

    def elaborate(self, platform: object) -> Module:
        m = Module()
        config = self.config
        host = (config.host_address_width, config.host_data_bytes)
        weights = (config.weight_address_width, config.weight_data_bytes)
        m.submodules.core = core = ShellCore(config, ShellKind.AXI)
        m.submodules.lite = lite = LiteSubordinate(ADDRESS_WIDTH)
        m.submodules.host_reader = host_reader = ReadManager(
            *host,
            clients=tuple(HOST_CLIENTS),
            whole=["program"],
            most_beats=most_host_beats(config),
            outstanding=self._outstanding,
        )
        m.submodules.host_writer = host_writer = WriteManager(
            *host, most_beats=most_host_beats(config), outstanding=self._outstanding
        )
        m.submodules.weight_reader = weight_reader = ReadManager(
            *weights,
            clients=tuple(WEIGHT_CLIENTS),
            most_beats=most_weight_beats(config),
            outstanding=self._outstanding,
        )
        connect(m, flipped(self.control), lite.bus)
        connect(m, lite.requests, core.requests)
        connect(m, core.responses, lite.responses)
        connect(m, host_reader.bus, flipped(self.host_read))
        connect(m, host_writer.bus, flipped(self.host_write))
        connect(m, weight_reader.bus, flipped(self.weights))
        connect(m, core.program, host_reader.client_program)
        connect(m, core.host_read, host_reader.client_data)
        connect(m, core.host_write, host_writer.port)
        connect(m, core.weights, weight_reader.client_data)
        connect(m, host_reader.errors, core.host_read_errors)
        connect(m, host_writer.errors, core.host_write_errors)
        connect(m, weight_reader.errors, core.weight_errors)
        managers: dict[str, ReadManager | WriteManager] = {
            "host_reader": host_reader,
            "host_writer": host_writer,
            "weight_reader": weight_reader,
        }
        for name, manager in managers.items():
            # A separate register for each manager, because they are far apart on the chip.
            flush = Signal(name=f"flush_{name}", attrs={"keep": 1})
            m.d.sync += flush.eq(core.next_resets)
            m.d.comb += manager.flush.eq(flush)
        m.d.comb += [
            host_reader.offset_data.eq(core.host_offset),
            host_writer.offset.eq(core.host_offset),
            weight_reader.offset_data.eq(core.weight_offset),
            core.idle.eq(Cat(manager.idle for manager in managers.values()).all()),
            self.interrupt.eq(core.interrupt),
        ]
        return m
