#!/usr/bin/env python3
"""Run all digits in the AXI shell, connected to cocotbext-axi's models, and compare the outputs with ONNX Runtime's."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from openmxu.models import digits_test_split
from tb.axi import CONFIG, IMAGES_VARIABLE
from tb.run import TestbenchError, run

__all__ = ["main"]


def main() -> int:
    """Run the demo and print the number of differing outputs; returns the exit status."""
    directory = Path("build/axi_demo").resolve()
    directory.mkdir(parents=True, exist_ok=True)
    os.environ[IMAGES_VARIABLE] = str(len(digits_test_split()[0]))
    try:
        run("axi_shell", CONFIG, ["axi.demo"], directory)
    except TestbenchError as error:
        print(f"axi_demo: error: {error}", file=sys.stderr)
        return 1
    (result,) = re.findall(r"\d+ outputs, \d+ differ", (directory / "simulation.log").read_text())
    print(f"S = {CONFIG.size}, {8 * CONFIG.host_data_bytes} and {8 * CONFIG.weight_data_bytes} data bits: {result}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
