"""Simulate a LiteX system: VexRiscv runs networks on the core through the driver in C, with LiteDRAM's model as memory.

    python -m scripts.litex
    python -m scripts.litex --network digits --images 24 --uart

The program image, the inputs and a table of contents are in the DRAM when the system starts. The firmware in ROM loads
each network, writes its inputs, waits for the device's interrupt, and prints class and outputs of every image on the
UART. They are compared with ONNX Runtime's. Utilization is compared with the same program on the AXI device, whose
memory answers after a few cycles and transfers a beat in each, and images per second with those that the AXI device
predicts with a memory as slow as the DRAM.

Exit status 1 when an output differs, the firmware fails, a network reaches less of that utilization than 0.8 (MNIST
0.75, because it waits for its weights), or the prediction is wrong by more than 5 %.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from openmxu.arch.config import Config
from openmxu.litex import openmxu_config
from scripts.litex.contents import memory_contents
from scripts.litex.firmware import FirmwareError, firmware
from scripts.litex.networks import DRAM, LEAST_OF_IDEAL, NETWORKS, Case, load_case, on_axi
from scripts.litex.results import Measurement, ResultError, read_results
from scripts.litex.simulation import build_simulation
from scripts.litex.soc import DRAM_BYTES, SimulatedSystem, simulated_sdram

FREQUENCY = 60e6
LARGEST_ERROR = 0.05
MOST_CYCLES = 200_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, compare and report; returns the exit status."""
    options = _options(arguments)
    logging.disable(logging.INFO)  # LiteX describes what it builds in some hundred lines
    config = openmxu_config(size=options.size, data_bytes=4)
    names = options.network or list(NETWORKS)
    try:
        cases = [load_case(name, config, options.images, options.batch) for name in names]
        measurements = _simulate(cases, config, options)
    except (FirmwareError, ResultError, TimeoutError) as error:
        print(f"litex: error: {error}", file=sys.stderr)
        return 1
    passed = True
    for case in cases:
        facts = _facts(case, measurements[case.network.name], compares=not options.no_ideal)
        passed = passed and facts["passed"]
        print(json.dumps(facts) if options.json else _text(facts), flush=True)
    return 0 if passed else 1


def _simulate(cases: Sequence[Case], config: Config, options: argparse.Namespace) -> dict[str, Measurement]:
    """Measurements by the networks' names."""
    folder = options.output
    memory = memory_contents([case.network for case in cases], DRAM_BYTES)
    system = SimulatedSystem(
        FREQUENCY,
        simulated_sdram(FREQUENCY, memory),
        lambda headers: firmware(headers, folder / "firmware"),
        **config.as_dict(),
    )
    simulation = build_simulation(system, folder)
    start = time.monotonic()
    try:
        lines = simulation.lines(MOST_CYCLES)
        shown = (_shown(line) for line in lines) if options.uart else lines
        measurements = read_results(shown, {case.network.name: case.output for case in cases})
        seconds = time.monotonic() - start
        print(f"simulated {simulation.cycles:,} cycles in {seconds:.0f} s", file=sys.stderr)
    finally:
        simulation.close()
    return measurements


def _shown(line: str) -> str:
    print(line, flush=True)
    return line


def _facts(case: Case, measured: Measurement, *, compares: bool) -> dict[str, Any]:
    results = measured.outputs.reshape(case.expected.shape)
    differing = int(np.count_nonzero(results != case.expected))
    classes = case.expected.reshape(len(results), -1).argmax(axis=1)
    wrong = int(np.count_nonzero(measured.classes != classes))
    cycles = measured.cycles
    utilization = cycles["array"] / cycles["core"]
    images = len(results)
    busy = cycles["total"] - cycles["waiting"]
    facts = {
        "network": case.network.name,
        "images": images,
        "batch": case.network.program.batch,
        "outputs": results.size,
        "differing": differing,
        "other_classes": wrong,
        "cycles_per_image": round(cycles["core"] / images, 1),
        "system_cycles_per_image": round(cycles["total"] / images, 1),
        "images_per_second": round(FREQUENCY * images / cycles["total"], 1),
        "core_images_per_second": round(FREQUENCY * images / cycles["core"], 1),
        "utilization": round(utilization, 4),
        "interrupt_latency": round(cycles["latencies"] / cycles["runs"], 1),
        "longest_interrupt_latency": cycles["latency"],
        "processor_cycles_per_image": round(busy / images, 1),
        "writing_cycles_per_image": round(cycles["writing"] / images, 1),
        "printing_cycles_per_image": round(cycles["printing"] / images, 1),
        "driver_cycles_per_run": round((busy - cycles["writing"] - cycles["printing"]) / cycles["runs"], 1),
        "load_cycles": cycles["loading"],
    }
    passed = not differing and not wrong
    if compares:
        ideal, _ = on_axi(case)
        _, predicted = on_axi(case, **DRAM)
        error = cycles["core"] / images / predicted - 1
        facts |= {
            "ideal_utilization": round(ideal, 4),
            "of_ideal": round(utilization / ideal, 3),
            "predicted_images_per_second": round(FREQUENCY / predicted, 1),
            "prediction_error": round(error, 4),
        }
        passed = passed and utilization >= LEAST_OF_IDEAL[case.network.name] * ideal and abs(error) <= LARGEST_ERROR
    return {**facts, "passed": passed}


def _text(facts: dict[str, Any]) -> str:
    verdict = "passed" if facts["passed"] else "FAILED"
    lines = [
        f"{facts['network']}: {verdict}, {facts['images']} images, batch {facts['batch']}",
        f"  outputs that differ from ONNX Runtime  {facts['differing']:,} of {facts['outputs']:,}",
        f"  classes that differ                    {facts['other_classes']:,} of {facts['images']:,}",
        f"  cycles of the core for an image        {facts['cycles_per_image']:,}: "
        f"{facts['core_images_per_second']:,} images per second at {FREQUENCY / 1e6:g} MHz",
    ]
    if "of_ideal" in facts:
        lines.append(
            f"  predicted                              {facts['predicted_images_per_second']:,} images per second, "
            f"{facts['prediction_error']:+.1%}"
        )
    lines.append(f"  array utilization                      {facts['utilization']:.3f}")
    if "of_ideal" in facts:
        lines.append(f"  with ideal memory                      {facts['ideal_utilization']:.3f}")
        lines.append(f"  part of that                           {facts['of_ideal']:.3f}")
    return "\n".join(
        [
            *lines,
            f"  from interrupt to handler              {facts['interrupt_latency']:,} cycles, "
            f"{facts['longest_interrupt_latency']} at most",
            f"  cycles of the system for an image      {facts['system_cycles_per_image']:,}: "
            f"{facts['images_per_second']:,} images per second at {FREQUENCY / 1e6:g} MHz",
            f"  cycles of the processor for an image   {facts['processor_cycles_per_image']:,}: "
            f"{facts['writing_cycles_per_image']:,} write the input, {facts['printing_cycles_per_image']:,} print",
            f"  cycles of the driver for a run         {facts['driver_cycles_per_run']:,}",
        ]
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", action="append", choices=NETWORKS, help="several times; default: all of them")
    parser.add_argument("--images", type=int, help="of each network; default: 360 digits, 4 of the others")
    parser.add_argument("--batch", type=int, help="images of one execution; default: 40 digits, 1 of the others")
    parser.add_argument("--size", type=int, default=8, help="of the array; default: %(default)s")
    parser.add_argument("--output", type=Path, default=Path("build/litex"), help="folder; default: %(default)s")
    parser.add_argument("--uart", action="store_true", help="show what the firmware prints")
    parser.add_argument("--no-ideal", action="store_true", help="without the AXI device")
    parser.add_argument("--json", action="store_true", help="one JSON object for each network")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
