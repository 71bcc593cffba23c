"""Prices of a core's parameters."""

from __future__ import annotations

import pytest

from openmxu.arch.config import Config
from scripts.fpga.prices import __main__ as command
from scripts.fpga.prices.table import Price, table

TYPES = {"LUT4": 10, "CCU2C": 4, "TRELLIS_DPR16X4": 1, "TRELLIS_FF": 20, "DP16KD": 3, "PFUMX": 9}


def test_the_price_of_a_netlist():
    assert Price.of(TYPES) == Price(logic=10 + 2 * 4 + 6, flip_flops=20, multipliers=0, block_rams=3)


def test_lines_are_differences_from_the_default():
    prices = [("", "", Price(1024, 20, 1, 3)), ("lanes", 1, Price(24, 21, 1, 3)), ("lanes", 4, Price(3024, 20, 0, 3))]
    assert table(prices).splitlines()[2:] == [
        "| all defaults |  | 1,024 | 20 | 1 | 3 |",
        "| `lanes` | 1 | -1,000 | +1 | 0 | 0 |",
        "| `lanes` | 4 | +2,000 | 0 | -1 | 0 |",
    ]


def test_the_command_prices_the_values_next_to_the_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    def price(part: object, config: Config) -> Price:
        return Price(config.weight_fifo_tiles, 0, 0, config.profile == "full")

    monkeypatch.setattr(command, "_price", price)
    assert command.main(["--parameter", "weight_fifo_tiles", "--parameter", "profile"]) == 0
    default = Config.for_size(8).weight_fifo_tiles
    assert capsys.readouterr().out.splitlines() == [
        f"| all defaults |  | {default} | 0 | 0 | 0 |",
        f"| `weight_fifo_tiles` | {default // 2} | -{default // 2} | 0 | 0 | 0 |",
        f"| `weight_fifo_tiles` | {default * 2} | +{default} | 0 | 0 | 0 |",
        "| `profile` | full | 0 | 0 | 0 | +1 |",
    ]


def test_a_part_of_the_table_is_not_written(capsys: pytest.CaptureFixture):
    with pytest.raises(SystemExit):
        command.main(["--write", "--parameter", "profile"])
    assert "--write needs all parameters" in capsys.readouterr().err
