"""Designs to compile: a component, the files that define it, and the paths of its memories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import openmxu.arch
import openmxu.rtl
from openmxu.arch.config import Config
from openmxu.sim.verilator.recording import PROBES, Probe

if TYPE_CHECKING:
    from amaranth.lib import wiring

__all__ = ["AXI", "CORE", "SERIAL", "Design"]


@dataclass(frozen=True)
class Design:
    """A component with the signature of the core, or another one with a separate harness.

    Attributes
    ----------
    make
        Makes the component for a configuration.
    sources
        Files, and folders of Python files, whose change requires a new build.
    unified_buffer
        For a configuration, the arrays of the unified buffer's banks: names of the submodules on the way down from the
        top and of the memory, joined by dots. Row r is element r // banks of bank r % banks.
    accumulators
        The same for the accumulators, one tuple of arrays per column. Row r is element r // n of array r % n.
    netlist
        A Verilog file to compile in place of the component that ``make`` returns; ``sources`` must name it.
    selector
        Name of an input that only the netlist has. It selects one of the netlist's faults, or none with 0.
    harness
        The C++ files around the model, in this module's folder.
    probes
        For a configuration, the signals of the component that can be recorded; either :data:`PROBES` or none.
    """

    make: Callable[[Config], wiring.Component]
    sources: tuple[Path, ...]
    unified_buffer: Callable[[Config], tuple[str, ...]]
    accumulators: Callable[[Config], tuple[tuple[str, ...], ...]]
    netlist: Path | None = None
    selector: str | None = None
    harness: tuple[str, ...] = ("streams.h", "channels.h", "harness.h", "harness.cpp")
    probes: Callable[[Config], tuple[Probe, ...]] = lambda config: ()

    def memories(self, config: Config) -> tuple[str, ...]:
        """Every array of the design: first the banks of the unified buffer, then the columns' arrays."""
        columns = (name for column in self.accumulators(config) for name in column)
        return (*self.unified_buffer(config), *columns)

    def recorded(self, config: Config) -> tuple[Probe, ...]:
        """The signals that can be recorded; a netlist may have other names for them, so it has none."""
        return self.probes(config) if self.netlist is None else ()


def _make_core(config: Config) -> wiring.Component:
    # Imported here because a build that is in the cache needs no Amaranth.
    from openmxu.rtl.cores import core_for

    return core_for(config)


def _make_axi(config: Config) -> wiring.Component:
    from openmxu.rtl.axi.top import Top

    return Top(config)


def _make_serial(config: Config) -> wiring.Component:
    from openmxu.rtl.serial.shell import Shell
    from openmxu.rtl.shell.clocked import Clocked

    return Clocked(Shell(config, _RETRANSMIT_CYCLES))


_RETRANSMIT_CYCLES = 20_000
"""Some hundredths of a second of simulation. The computer rarely takes longer to answer; then a frame is sent again."""

_HARDWARE = tuple(Path(next(iter(package.__path__))) for package in (openmxu.rtl, openmxu.arch))


def _accumulator_banks(config: Config) -> tuple[str, ...]:
    """The memories of one accumulator column."""
    return ("",) if config.features.is_sequential else (".even", ".odd")


CORE = Design(
    make=_make_core,
    sources=_HARDWARE,
    unified_buffer=lambda config: tuple(
        f"unified_buffer.bank_{bank}.memory" for bank in range(config.unified_buffer_banks)
    ),
    accumulators=lambda config: tuple(
        tuple(f"accumulators.column_{column}{bank}" for bank in _accumulator_banks(config))
        for column in range(config.size)
    ),
    probes=lambda config: () if config.features.is_sequential else PROBES,
)
"""The openmxu core."""

AXI = Design(
    make=_make_axi,
    sources=_HARDWARE,
    unified_buffer=lambda config: (),
    accumulators=lambda config: (),
    harness=("streams.h", "channels.h", "axi_channels.h", "axi_harness.cpp"),
)
"""The core in its AXI shell."""

SERIAL = Design(
    make=_make_serial,
    sources=_HARDWARE,
    unified_buffer=lambda config: (),
    accumulators=lambda config: (),
    harness=("serial_harness.cpp",),
)
"""The core in its serial shell, without the UART: bytes go in and out as through a USB FIFO."""
