"""The table that compares products with SCALE-Sim."""

from __future__ import annotations

from scripts.peers.table import Pair, table_of


def test_cycles_are_bold_where_the_peer_takes_fewer():
    products = {
        (31, 31, 31): {8: Pair(847, 794, 661), 16: Pair(307, 403, 207)},
        (17, 100, 33): {8: Pair(2534, 2534, 1105), 16: Pair(1322, 851, 672)},
    }
    assert table_of(products).splitlines() == [
        "",
        "| M × K × N | S = 8: SCALE-Sim | openmxu | bound | S = 16: SCALE-Sim | openmxu | bound |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| 31 × 31 × 31 | 847 | 794 | 661 | 307 | **403** | 207 |",
        "| 17 × 100 × 33 | 2,534 | 2,534 | 1,105 | 1,322 | 851 | 672 |",
        "",
    ]
