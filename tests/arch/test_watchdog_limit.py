"""The watchdog's limit is longer than the longest instruction, but not much longer."""

from __future__ import annotations

from openmxu.arch.config import Config
from openmxu.arch.watchdog_limit import WatchdogLimit
from openmxu.assembler import assemble

CONFIG = Config(size=8, activation_lanes=1, unified_buffer_rows=1024, accumulator_rows=512)
WINDOW = "set_configuration register=POOLING_WINDOW, height=20, width=30\n"
POOL = "activate rows=100, pooling=MAX, output=INT32\n"


def test_plain_instructions_take_the_same_time():
    plain = WatchdogLimit(CONFIG).cycles([])
    assert plain >= 50_000
    assert WatchdogLimit(CONFIG).cycles(assemble(f"{WINDOW}activate rows=100\nhalt")) == plain
    assert WatchdogLimit(Config(size=4, unified_buffer_rows=100, accumulator_rows=50)).cycles([]) == 50_000


def test_windows_raise_the_limit():
    # 100 results of 4 bytes, each of 20 · 30 positions, in eight column groups.
    assert WatchdogLimit(CONFIG).cycles(assemble(f"{WINDOW}{POOL}halt")) > 100 * 4 * 600 * 8


def test_a_window_of_an_earlier_program_counts():
    patience = WatchdogLimit(CONFIG)
    assert patience.cycles(assemble(f"{WINDOW}halt")) == patience.cycles([])
    assert patience.cycles(assemble(f"{POOL}halt")) > 100 * 4 * 600 * 8


def test_the_harness_can_count_the_longest_time():
    huge = assemble("set_configuration register=POOLING_WINDOW, value=0xffff_ffff\nactivate rows=0xffffff, pooling=MAX")
    assert WatchdogLimit(Config.preset("tpu_v1", activation_lanes=1)).cycles(huge) <= 1 << 62


def test_illegal_words_do_not_matter():
    assert WatchdogLimit(CONFIG).cycles(assemble(".word 0xff\n.word 0x801")) == WatchdogLimit(CONFIG).cycles([])
