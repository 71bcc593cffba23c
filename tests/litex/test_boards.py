"""The system of each board as LiteX generates it, with its constraints; no tool of an FPGA runs."""

import re
import shutil

import pytest

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        shutil.which("riscv64-unknown-elf-gcc") is None, reason="the firmware needs gcc-riscv64-unknown-elf"
    ),
]

PINS = {"ulx3s": 43, "ecpix5": 48}
"""Clock, reset, serial port, and the DRAM's."""


@pytest.fixture(scope="module", params=PINS)
def system(request, tmp_path_factory):
    from scripts.litex.boards import BOARDS
    from scripts.litex.boards.flow import board_config, board_source

    board, folder = BOARDS[request.param], tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("openmxu.litex.module.to_verilog", lambda *_, **__: "")  # the core, which has tests of its own
        return board, board_source(board, board_config(board, 2), board.frequency, folder), folder


def test_every_port_has_a_pin(system):
    board, source, _ = system
    ports = set()
    (top,) = re.findall(rf"^module {source.top} \((.*?)^\);", source.verilog, re.MULTILINE | re.DOTALL)
    for high, name in re.findall(r"(?:input|output|inout)\s+(?:wire|reg)\s+(?:\[(\d+):0\])?\s*(\w+)", top):
        ports |= {f"{name}[{index}]" for index in range(int(high) + 1)} if high else {name}
    _, constraints = source.constraints
    located = dict(re.findall(r'LOCATE COMP "(\S+)" SITE "(\w+)"', constraints))
    assert set(located) == ports
    assert len(set(located.values())) == len(located) == PINS[board.name]
    standards = re.findall(r'IOBUF PORT "(\S+)" IO_TYPE=', constraints)
    assert sorted(standards) == sorted(ports)


def test_clock_input(system):
    board, source, _ = system
    name, hertz = board.oscillator
    assert f'FREQUENCY PORT "{name}" {hertz / 1e6:g} MHZ;' in source.constraints[1]


def test_memory(system):
    board, source, folder = system
    header = (folder / "litex" / "software" / "include" / "generated" / "mem.h").read_text()
    assert f"#define MAIN_RAM_SIZE 0x{board.dram_bytes:08x}" in header
    assert "#define MAIN_RAM_BASE 0x40000000" in header
    assert source.verilog.count("\nDQSBUFM #(") == (2 if board.is_ddr3 else 0)
    settings = (folder / "litex" / "software" / "include" / "generated" / "sdram_phy.h").read_text()
    assert ("SDRAM_PHY_READ_LEVELING_CAPABLE" in settings) is board.is_ddr3


def test_firmware_fits_its_memory(system):
    _, _, folder = system
    size = (folder / "firmware" / "firmware.bin").stat().st_size
    assert 8 << 10 < size < 24 << 10  # of 32 KiB


@pytest.mark.parametrize("frequency", ["1", "1000", "nan"])
def test_a_frequency_without_a_clock(frequency, tmp_path, capsys):
    from scripts.litex.boards.__main__ import main

    assert main(["ecpix5", "--frequency", frequency, "--output", str(tmp_path / "none")]) == 2
    assert "--frequency must be from 20 to 150 MHz" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
