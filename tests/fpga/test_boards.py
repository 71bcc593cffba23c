"""Boards: everything around the shell, with a small design in place of the shell, down to the bitstream."""

import re
from pathlib import Path

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from openmxu.arch.config import Config
from openmxu.rtl.boards import BOARDS, TOP
from openmxu.rtl.boards.pll import pll_factors
from openmxu.rtl.common.stream_fifo import StreamFIFO
from openmxu.rtl.fpga.target import Family
from openmxu.rtl.serial.link.uart import UartReceiver, UartTransmitter, uart_divisor
from scripts import synthesize
from scripts.fpga.boards import find_board, make_bitstream, on_board
from scripts.fpga.errors import FlowError, TimingError
from scripts.fpga.implementation import implement

BITSTREAMS = {Family.ECP5: ".bit", Family.ICE40: ".bin", Family.GOWIN: ".fs"}


class Echo(wiring.Component):
    """Has the ports of the shell, and sends back all bytes that it receives."""

    def __init__(self, config, *, clock, baud):
        self.divisor = uart_divisor(clock, baud)
        super().__init__({"uart_rx": In(1, init=1), "uart_tx": Out(1, init=1), "running": Out(1), "faulted": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = UartReceiver(self.divisor)
        m.submodules.queue = queue = StreamFIFO(8, 4)
        m.submodules.transmitter = transmitter = UartTransmitter(self.divisor)
        m.d.comb += [
            receiver.rx.eq(self.uart_rx),
            self.uart_tx.eq(transmitter.tx),
            queue.input.valid.eq(receiver.bytes.valid),
            queue.input.payload.eq(receiver.bytes.payload),
            self.running.eq(queue.level != 0),
        ]
        connect(m, queue.output, transmitter.bytes)
        return m


@pytest.mark.parametrize("name", BOARDS)
def test_a_platform_has_what_the_design_needs(name):
    board = BOARDS[name]
    platform = board.make_platform()
    needed = {("button", 0), ("uart", 0), *(("led", number) for number in range(len(board.leds)))}
    assert needed - set(platform.resources) == set()
    assert platform.default_clk is not None


@pytest.mark.parametrize("name", BOARDS)
def test_a_small_design_becomes_a_bitstream(name, tmp_path, monkeypatch):
    monkeypatch.setattr("openmxu.rtl.boards.top.UartShell", Echo)
    board = find_board(name)
    source, frequency = on_board(board, Config.for_size(2), board.frequency, board.baud)
    assert board.frequency * 0.9 < frequency <= board.frequency
    made = implement(source, tmp_path, seeds=(1,), frequency=frequency, say=lambda _: None)
    report = made.report
    assert (report["target"], report["part"]) == (name, board.part)
    assert report["fmax_mhz"] > frequency
    assert 40 < report["ff"] < 200
    assert 0 < report["lut"] < 1000
    assert report["critical_path"]["from"]
    bitstream = make_bitstream(made, source.part, frequency)
    assert bitstream.name == TOP + BITSTREAMS[board.family]
    assert bitstream.stat().st_size > 50_000
    with pytest.raises(TimingError, match=r"the clock has 900.00 MHz, and the fastest seed reaches"):
        make_bitstream(made, source.part, 900.0)


def test_a_pll_is_never_faster_than_requested():
    for family, clock in ((Family.ECP5, 25_000_000), (Family.ICE40, 12_000_000), (Family.GOWIN, 27_000_000)):
        for mhz in (17, 20, 33.5, 61, 100):
            factors = pll_factors(family, clock, mhz * 1e6)
            assert mhz * 0.9e6 < factors.frequency <= mhz * 1e6
            made = clock / factors.reference * factors.feedback
            assert factors.oscillator == pytest.approx(factors.frequency * factors.output)
            assert made == pytest.approx(factors.frequency if family is Family.GOWIN else factors.oscillator)
    with pytest.raises(ValueError, match="no PLL of ecp5 makes 1 MHz of 25 MHz"):
        pll_factors(Family.ECP5, 25_000_000, 1e6)


def test_an_unknown_board_is_an_error():
    with pytest.raises(FlowError, match=re.escape(f"unknown board 'de10'; known: {', '.join(BOARDS)}")):
        find_board("de10")


def test_projects_for_vendors(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("openmxu.rtl.boards.top.UartShell", Echo)
    where = ("--output", str(tmp_path))
    assert synthesize.main(["--toolchain", "vivado", "--part", "xc7a35tcpg236-1", "--size", "2", *where]) == 0
    script = Path(capsys.readouterr().out.removesuffix(": written, not run\n"))
    assert "-part xc7a35tcpg236-1" in script.read_text()
    assert "-period 7.692" in script.with_suffix(".xdc").read_text()
    assert "module openmxu_axi(" in script.with_suffix(".v").read_text()
    for toolchain, board, suffix in (("gowin", "tang_nano_9k", ".cst"), ("diamond", "ulx3s_85f", ".lpf")):
        assert synthesize.main(["--toolchain", toolchain, "--board", board, *where]) == 0
        script = Path(capsys.readouterr().out.removesuffix(": written, not run\n"))
        assert script.exists()
        assert script.with_name(TOP + suffix).exists()
        assert script.with_name(TOP + ".v").exists()
    assert synthesize.main(["--toolchain", "gowin", "--board", "ulx3s_85f", *where]) == 1
    assert capsys.readouterr().err == "synthesize: error: gowin is not for LFE5U-85F-6BG381C\n"
    assert synthesize.main(["--toolchain", "gowin", "--part", "LFE5U-85F"]) == 1
