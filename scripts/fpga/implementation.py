"""A design on a part: one netlist, a placement for each seed, a report."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from openmxu.arch.config import Config
from openmxu.rtl.axi.top import TOP, Top
from openmxu.rtl.fpga.target import Family, Target
from openmxu.rtl.verilog.convert import to_verilog
from scripts.fpga.ecp5.block_places import sites_to_match
from scripts.fpga.ecp5.small_memories import in_distributed_ram, smallest_memories
from scripts.fpga.errors import DoesNotFitError, FlowError
from scripts.fpga.multipliers import target_for
from scripts.fpga.nextpnr import Placement, place, with_matched_blocks
from scripts.fpga.parts import Part
from scripts.fpga.report import make_report, write_report
from scripts.fpga.yosys import RESET_GROUP, Netlist, synthesize

__all__ = [
    "OUT_OF_CONTEXT",
    "OUT_OF_CONTEXT_MHZ",
    "Implementation",
    "Source",
    "implement",
    "make_netlist",
    "out_of_context",
]

OUT_OF_CONTEXT = "out of context"

OUT_OF_CONTEXT_MHZ = 130.0
"""Target frequency of placements: more than any of them reaches, so that every path is optimized."""

_SHARED_RESETS = 0.7
"""The largest share of :attr:`~scripts.fpga.parts.Part.shared_resets` with which resets stay in slices. The placer
begins with flip-flops that belong to a LUT: in a fuller part it finds no tile for the last ones with another reset."""

Say = Callable[[str], None]
"""Called with a line about the next step."""


@dataclass(frozen=True)
class Source:
    """A design and the part that it is placed on.

    Attributes
    ----------
    target
        The name of the board, or ``"out of context"``.
    config
        Sizes of the core.
    part
        The FPGA.
    top
        Name of the top module.
    verilog
        All modules.
    constraints
        Name and text of a file that defines pins and clocks; ``None`` out of context.
    """

    target: str
    config: Config
    part: Part
    top: str
    verilog: str
    constraints: tuple[str, str] | None = None


@dataclass(frozen=True)
class Implementation:
    """The result of an implementation.

    Attributes
    ----------
    netlist
        The netlist of the family's cells.
    placements
        One for each seed; empty if the design does not fit.
    report
        The contents of ``report.json``.
    """

    netlist: Netlist
    placements: tuple[Placement, ...]
    report: dict[str, Any]

    @property
    def fastest(self) -> Placement:
        """The fastest placement, which a bitstream is made of."""
        return max(self.placements, key=lambda placement: placement.fmax)


def out_of_context(config: Config, part: Part) -> Source:
    """The AXI shell alone, its ports bound to no pins, so that the figures are those of the whole accelerator.

    Raises
    ------
    FlowError
        The part's place-and-route tool needs a pin for each port.
    """
    if part.family is not Family.ECP5:
        raise FlowError(f"{part.nextpnr} places nothing out of context: {part.name} needs a board")

    def verilog(target: Target) -> str:
        return to_verilog(Top(config), TOP, target)

    return Source(OUT_OF_CONTEXT, config, part, TOP, verilog(target_for(config, part, verilog)))


def implement(source: Source, folder: Path, *, seeds: Sequence[int], frequency: float, say: Say) -> Implementation:
    """Synthesize, place and route, and write ``report.json``, all of it in ``folder``.

    A report is also written for a design that does not fit.

    Parameters
    ----------
    source
        The design and its part.
    folder
        Folder of all files.
    seeds
        Seeds of the placements; the report has their median.
    frequency
        Target frequency of placements, in MHz.
    say
        Called before each step.

    Raises
    ------
    MissingToolError, ToolError
        A tool is missing or failed.
    NetlistError
        The netlist no longer matches the design.
    """
    report_path = folder / "report.json"
    report_path.unlink(missing_ok=True)
    say("synthesis")
    netlist = make_netlist(source, folder, say)
    constraints = None
    if source.constraints is not None:
        constraints, text = source.constraints
        (netlist.folder / constraints).write_text(text)
    placements = []
    try:
        if sites := sites_to_match(netlist.types, source.part.block_sites):
            say("places of blocks")
            netlist = with_matched_blocks(netlist, source.part, sites, frequency=frequency, constraints=constraints)
        say(f"placements with {len(seeds)} {'seed' if len(seeds) == 1 else 'seeds'}")
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # each thread waits for a process
            runs = [
                pool.submit(place, netlist, source.part, seed=seed, frequency=frequency, constraints=constraints)
                for seed in seeds
            ]
            placements = [run.result() for run in runs]
        usage = placements[0].usage
    except DoesNotFitError as error:
        # Whether the placer succeeds may depend on the seed; if one seed fails, the part is too small.
        placements, usage = [], error.usage
    report = make_report(source.target, source.config, source.part, netlist, placements, usage)
    write_report(report, report_path)
    return Implementation(netlist, tuple(placements), report)


def make_netlist(source: Source, folder: Path, say: Say) -> Netlist:
    """Synthesize the netlist: with memories in distributed RAM if the part has too few blocks, and with resets in logic
    if most of its flip-flops are used."""
    part, top = source.part, source.top
    netlist = synthesize(source.verilog, top, part.family, folder, part.array_sites)
    places = sum(len(part.block_sites.get(kind, ())) for kind in part.block_rams)
    blocks = [name for name, kind in netlist.cells.items() if kind in part.block_rams]
    small = smallest_memories(source.verilog, top, blocks, len(blocks) - places) if 0 < places < len(blocks) else []
    flip_flops = netlist.types[part.flip_flops]
    is_full = 0 < part.shared_resets * _SHARED_RESETS < flip_flops
    if not small and not is_full:
        return netlist
    changes = [f"{', '.join(small)} in distributed RAM"] * bool(small) + ["resets in logic"] * is_full
    say(f"synthesis with {' and '.join(changes)}")
    netlist = synthesize(
        in_distributed_ram(source.verilog, top, small),
        top,
        part.family,
        folder / "again",
        part.array_sites,
        reset_group=flip_flops + 1 if is_full else RESET_GROUP,
    )
    return replace(netlist, distributed=tuple(small))
