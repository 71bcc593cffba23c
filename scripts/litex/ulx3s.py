"""Write the bitstream of the LiteX system for the ULX3S with an LFE5U-85F, its SDRAM as memory of processor and core.

    python -m scripts.litex.ulx3s
    python -m scripts.litex.ulx3s --frequency 62.5 --seed 3

Yosys and nextpnr come from PyPI (pip install 'openmxu[litex,fpga]'). Every file stays in the output folder, and files
that are up to date are not made again. Exit status 1 when a tool fails or a clock is too slow.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import shutil
import sys
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

from litedram.phy import HalfRateGENSDRPHY
from litex.build.generic_platform import IOStandard, Misc, Pins, Subsignal
from litex.build.io import DDROutput
from litex.build.lattice.platform import LatticePlatform
from litex.gen import LiteXModule
from litex.soc.cores.clock import ECP5PLL
from litex.soc.integration.builder import Builder
from migen import ClockDomain, ClockSignal

from openmxu.arch.config import Config
from openmxu.litex import openmxu_config
from scripts.fpga.boards import make_bitstream
from scripts.fpga.errors import FlowError
from scripts.fpga.implementation import Implementation, Source, implement
from scripts.fpga.parts import find_part
from scripts.fpga.report import summary
from scripts.fpga.sweep.rows import SEEDS
from scripts.litex.__main__ import firmware
from scripts.litex.firmware import FirmwareError
from scripts.litex.soc import CAS_LATENCY, DRAM_RATE, System, verilog_of

DEVICE = "LFE5U-85F-6BG381C"
OSCILLATOR = 25e6
TOP = "openmxu_ulx3s"

_FAST = (Misc("PULLMODE=NONE"), Misc("DRIVE=4"), Misc("SLEWRATE=FAST"), IOStandard("LVCMOS33"))
_PINS = [
    ("clk25", 0, Pins("G2"), IOStandard("LVCMOS33")),
    ("rst", 0, Pins("R1"), Misc("PULLMODE=DOWN"), IOStandard("LVCMOS33")),
    ("serial", 0, Subsignal("tx", Pins("L4")), Subsignal("rx", Pins("M1")), IOStandard("LVCMOS33")),
    ("sdram_clock", 0, Pins("F19"), *_FAST),
    (
        "sdram",
        0,
        Subsignal("a", Pins("M20 M19 L20 L19 K20 K19 K18 J20 J19 H20 N19 G20 G19")),
        Subsignal("dq", Pins("J16 L18 M18 N18 P18 T18 T17 U20 E19 D20 D19 C20 E18 F18 J18 J17")),
        Subsignal("we_n", Pins("T20")),
        Subsignal("ras_n", Pins("R20")),
        Subsignal("cas_n", Pins("T19")),
        Subsignal("cs_n", Pins("P20")),
        Subsignal("cke", Pins("F20")),
        Subsignal("ba", Pins("P19 N20")),
        Subsignal("dm", Pins("U19 E20")),
        *_FAST,
    ),
]


class Clocks(LiteXModule):
    """The system's clock, that of the DRAM's controller at its pins, and that of the DRAM, half a cycle later."""

    def __init__(self, platform: Any, frequency: float) -> None:
        self.cd_sys = ClockDomain()
        self.cd_sys2x = ClockDomain()
        self.cd_sys2x_ps = ClockDomain(reset_less=True)
        self.pll = pll = ECP5PLL()
        self.comb += pll.reset.eq(platform.request("rst"))
        pll.register_clkin(platform.request("clk25"), OSCILLATOR)
        pll.create_clkout(self.cd_sys, frequency)
        pll.create_clkout(self.cd_sys2x, DRAM_RATE * frequency)
        pll.create_clkout(self.cd_sys2x_ps, DRAM_RATE * frequency, phase=180, with_reset=False)
        self.specials += DDROutput(1, 0, platform.request("sdram_clock"), ClockSignal("sys2x_ps"))


class BoardSystem(System):
    """The system with the board's clock, SDRAM and serial port."""

    def __init__(self, frequency: float, firmware_of: Any, config: Config) -> None:
        platform = LatticePlatform(DEVICE, _PINS, name="ulx3s", toolchain="trellis")
        self.crg = Clocks(platform, frequency)
        dram = HalfRateGENSDRPHY(platform.request("sdram"), frequency, cl=CAS_LATENCY)
        super().__init__(platform, frequency, dram, firmware_of, "serial", **config.as_dict())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the flow; returns the exit status."""
    options = _options(arguments)
    logging.disable(logging.INFO)  # LiteX describes what it builds in some hundred lines
    try:
        made = make(options.output, options.size, options.frequency, options.seeds or SEEDS)
        print(summary(made.report))
        print(f"{bitstream(made, options.frequency)}: {options.frequency:g} MHz")
    except (FlowError, FirmwareError, ValueError, OSError) as error:
        print(f"ulx3s: error: {error}", file=sys.stderr)
        return 1
    return 0


def make(folder: Path, size: int, frequency: float, seeds: Sequence[int]) -> Implementation:
    """Place and route the system, in a folder."""
    config = openmxu_config(size=size, data_bytes=4)
    generated, implementation = folder / "litex", folder / "implementation"
    system = BoardSystem(frequency * 1e6, lambda headers: firmware(headers, folder / "firmware"), config)
    # The part of LiteX's flow that generates; the tools are those of the project's other bitstreams.
    system.platform.build = lambda fragment, **given: _write(system.platform, fragment, **given)
    builder = Builder(system, output_dir=str(generated), compile_software=False, compile_gateware=False)
    builder.build(build_name=TOP)
    contents = sorted(Path(builder.gateware_dir).glob("*.init"))
    for place in (implementation, implementation / "again"):
        place.mkdir(parents=True, exist_ok=True)
        for path in contents:
            shutil.copy(path, place)
    # The netlist is made again when the Verilog changes, which only names the files.
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in contents)).hexdigest()
    verilog = verilog_of(system.platform, Path(builder.gateware_dir) / f"{TOP}.v")
    source = Source(
        target="ULX3S with SDRAM, LiteX",
        config=config,
        part=find_part(DEVICE),
        top=TOP,
        verilog=f"{verilog}// memories: {digest}\n",
        constraints=(f"{TOP}.lpf", (Path(builder.gateware_dir) / f"{TOP}.lpf").read_text()),
    )
    say = lambda step: print(f"{step} …", file=sys.stderr, flush=True)  # noqa: E731
    return implement(source, implementation, seeds=seeds, frequency=frequency, say=say)


def bitstream(made: Implementation, frequency: float) -> Path:
    """Write the bitstream of the fastest placement, if all of its clocks are fast enough.

    Raises
    ------
    FlowError
        A clock is too slow, the design does not fit, or a tool failed.
    """
    report = made.netlist.folder / f"{TOP}.{made.fastest.seed}.report.json"
    for name, clock in json.loads(report.read_text())["fmax"].items():
        if clock["achieved"] < clock["constraint"]:
            reached = f"{clock['achieved']:.2f} MHz"
            raise FlowError(f"the clock {name} has {clock['constraint']:g} MHz, and reaches {reached}")
    return make_bitstream(made, find_part(DEVICE), frequency)


def _write(platform: Any, fragment: Any, *, build_dir: str, build_name: str, **_: Any) -> Any:
    """Verilog, contents of memories, and constraints."""
    fragment = fragment.get_fragment()
    platform.finalize(fragment)
    folder = Path(build_dir)
    verilog = platform.get_verilog(fragment, name=build_name)
    names, _ = platform.resolve_signals(verilog.ns)
    lines = ["BLOCK RESETPATHS;", "BLOCK ASYNCPATHS;", f'FREQUENCY PORT "clk25" {OSCILLATOR / 1e6:g} MHZ;']
    for signal, pins, attributes, _resource in names:
        for index, pin in enumerate(pins):
            port = f"{signal}[{index}]" if len(pins) > 1 else signal
            lines.append(f'LOCATE COMP "{port}" SITE "{pin}";')
            lines += [f'IOBUF PORT "{port}" {_attribute(item)};' for item in attributes]
    (folder / f"{build_name}.lpf").write_text("\n".join(lines) + "\n")
    with chdir(folder):
        verilog.write(f"{build_name}.v")
    return verilog.ns


def _attribute(item: Any) -> str:
    return f"IO_TYPE={item.name}" if isinstance(item, IOStandard) else item.misc


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=8, help="of the array; default: %(default)s")
    parser.add_argument("--frequency", type=float, default=60.0, metavar="MHZ", help="default: %(default)s")
    parser.add_argument(
        "--seed", dest="seeds", type=int, action="append", help=f"of a placement, several times; default: {SEEDS}"
    )
    parser.add_argument("--output", type=Path, default=Path("build/litex/ulx3s"), help="folder; default: %(default)s")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
