"""Adds the core to a LiteX system: registers on its bus, memory ports on its DRAM, interrupt to its processor."""

from __future__ import annotations

from typing import Any

from litedram.frontend.axi import LiteDRAMAXI2Native
from litex.soc.integration.soc import SoCRegion
from litex.soc.interconnect import axi
from migen import ClockDomainsRenamer

from openmxu.arch.registers import ADDRESS_WIDTH
from openmxu.litex.module import OpenMXU
from openmxu.litex.options import openmxu_config

__all__ = ["add_openmxu"]

_READ_BUFFER = 32
"""Beats of a port that may be on their way from the DRAM: more than its latency, so that bursts have no gaps."""


def add_openmxu(
    soc: Any,
    name: str = "openmxu",
    *,
    clock_domain: str = "sys",
    loops: bool = False,
    **parameters: int | str,
) -> OpenMXU:
    """Add the core to a system, and return its module.

    Its registers are a region of 4 KiB, not cached, of the system's bus. With LiteDRAM in the system each memory port
    of the core gets a port of the DRAM, through LiteDRAM's converters where width or clock differ; otherwise both are
    masters of the DMA bus, or of the main bus. The DRAM must be added first, without an L2 cache (``l2_cache_size=0``):
    what the processor writes would stay there. Constants such as ``CONFIG_OPENMXU_SIZE`` are for the firmware.

    Parameters
    ----------
    soc
        A ``SoCCore`` of LiteX.
    name
        Name of the module, of its region, and of its interrupt.
    clock_domain
        Clock domain of the core; registers and memory ports cross to ``sys``.
    loops
        See :class:`OpenMXU`.
    parameters
        See :func:`openmxu_config`; beats are as wide as the DRAM's port, unless they are named.

    Raises
    ------
    ValueError
        A parameter is outside its range, or the core has a separate clock domain and the system no LiteDRAM.
    TypeError
        There is no such parameter.
    """
    dram = getattr(soc, "sdram", None)
    width = soc.bus.data_width if dram is None else dram.crossbar.controller.data_width
    options: dict[str, Any] = {"data_bytes": min(64, max(4, width // 8)), **parameters}
    core = OpenMXU(soc.platform, openmxu_config(**options), clock_domain, loops=loops)
    soc.add_module(name=name, module=core)
    _add_registers(soc, name, core)
    if dram is not None:
        origin = soc.bus.regions["main_ram"].origin
        for manager, mode in ((core.host, "both"), (core.weights, "read")):
            port = dram.crossbar.get_port(mode=mode, data_width=manager.data_width, clock_domain=clock_domain)
            converter = LiteDRAMAXI2Native(
                manager, port, w_buffer_depth=_READ_BUFFER, r_buffer_depth=_READ_BUFFER, base_address=origin
            )
            soc.submodules += ClockDomainsRenamer(clock_domain)(converter)
    elif clock_domain != "sys":
        raise ValueError(f"a core in the clock domain {clock_domain!r} needs LiteDRAM, whose ports cross clock domains")
    else:
        bus = getattr(soc, "dma_bus", soc.bus)
        bus.add_master(f"{name}_host", core.host)
        bus.add_master(f"{name}_weights", core.weights)
    if soc.irq.enabled:
        soc.irq.add(name, use_loc_if_exists=True)
    for parameter, value in core.config.as_dict().items():
        soc.add_config(f"{name}_{parameter}", value)
    return core


def _add_registers(soc: Any, name: str, core: OpenMXU) -> None:
    registers = core.registers
    if core.clock_domain != "sys":
        registers = axi.AXILiteInterface(data_width=32, address_width=32)
        soc.submodules += axi.AXILiteClockDomainCrossing(registers, core.registers, "sys", core.clock_domain)
    soc.bus.add_slave(name, registers, SoCRegion(size=1 << ADDRESS_WIDTH, cached=False))
