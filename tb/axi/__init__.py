"""Tests of the AXI shell, connected to bus models of cocotbext-axi."""

import warnings

from openmxu.arch.config import Config

__all__ = ["CONFIG", "IMAGES_VARIABLE"]


# cocotbext-axi 0.1.28 still uses names that cocotb 2.1 has replaced.
warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"cocotbext\.axi\.")

CONFIG = Config(
    size=4,
    unified_buffer_rows=512,
    unified_buffer_banks=1,
    accumulator_rows=128,
    activation_lanes=2,
    parameter_sets=16,
    host_data_bytes=64,
    weight_data_bytes=4,
    host_address_width=40,
)
"""Covers the widest and the narrowest data bus, and host addresses of more than 32 bits."""

IMAGES_VARIABLE = "OPENMXU_TESTBENCH_IMAGES"
"""Environment variable that replaces the number of images that the digits network sees."""
