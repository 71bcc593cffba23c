"""Firmware, DDR3 whose delays are to be found, and loader together, on the simulated system."""

import shutil

import numpy as np
import pytest

pytestmark = [
    pytest.mark.build,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        shutil.which("riscv64-unknown-elf-gcc") is None, reason="the firmware needs gcc-riscv64-unknown-elf"
    ),
]

IMAGES = 6


def test_a_network_is_loaded_into_ddr3(tmp_path):
    from openmxu.litex import openmxu_config
    from scripts.litex.contents import memory_parts
    from scripts.litex.loader import Loader
    from scripts.litex.networks import load_case
    from scripts.litex.results import read_results
    from scripts.litex.simulated_board import simulate_board

    case = load_case("digits", openmxu_config(size=4, data_bytes=16), IMAGES, 2)
    port = simulate_board(case.network.program.config, 60e6, True, tmp_path)
    loader = Loader(port, 0x40000000, quiet=1e-3)
    loader.connect()
    for _ in range(2):  # the firmware takes another network after the first
        loader.write(memory_parts([case.network], 1 << 20))
        measured = read_results(loader.run(), {"digits": case.output})["digits"]
        np.testing.assert_array_equal(measured.outputs.reshape(case.expected.shape), case.expected)
        np.testing.assert_array_equal(measured.classes, case.expected.argmax(axis=1))
