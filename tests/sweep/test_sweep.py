"""Descriptions of sweeps, the journal, and the best points."""

from __future__ import annotations

import pytest

from openmxu.sweep import Journal, SweepError, expanded, is_best, points_of, read_settings


def test_configurations_are_all_combinations():
    settings = read_settings(
        'networks = ["8x8x8"]\n[[configurations]]\nsize = [4, 8]\nmemory_latency = [4, 100]\n[[configurations]]\n'
        'preset = "tiny"\nhost_rate = 2.5\n'
    )
    assert [dict(values) for values in settings.configurations] == [
        {"size": 4, "memory_latency": 4},
        {"size": 4, "memory_latency": 100},
        {"size": 8, "memory_latency": 4},
        {"size": 8, "memory_latency": 100},
        {"preset": "tiny", "host_rate": "5/2"},
    ]
    assert [point.config and point.config.size for point in points_of(settings)] == [4, 4, 8, 8, 4]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("networks = [", "Invalid value"),
        ("network = []", "unknown key 'network'; is 'networks' meant?"),
        ("networks = [1]", "networks must be a list of names"),
        ("batch = 0", "batch must be an integer from 1 on, not 0"),
        ("[[configurations]]\nlanes = 2", "unknown parameter 'lanes'; known: size, "),
        ("[[configurations]]\nsize = [4.5]", "size must be an integer, not 4.5"),
        ("[[configurations]]\nsize = []", "size has no values"),
        ("[[configurations]]\nmemory_latency = 0", "memory_latency must be from 1 to 10000, not 0"),
        ("[[configurations]]\nmemory_latency = 1000000000", "memory_latency must be from 1 to 10000, not 1000000000"),
        (
            "[[configurations]]\nweight_rate = '1/0'",
            "weight_rate must be a number of bytes per cycle from 1/1000 to 1000",
        ),
        ("[[configurations]]\nhost_rate = '1e999999999'", "host_rate must be a number of bytes per cycle from 1/1000"),
    ],
)
def test_wrong_description(text, problem):
    with pytest.raises(SweepError) as error:
        read_settings(text)
    assert problem in str(error.value)


def test_values_that_make_no_configuration_are_points_with_an_error():
    settings = read_settings('networks = ["8x8x8"]\n[[configurations]]\nsize = 3\n')
    (point,) = points_of(settings)
    assert (point.config, point.error) == (None, "size must be a power of two, not 3")


def test_journal_drops_a_line_that_was_cut_short(tmp_path):
    path = tmp_path / "journal"
    with Journal(path) as journal:
        journal.append({"a": {"cycles": 1}})
        journal.append({"b": {"cycles": 2}})
    path.write_bytes(path.read_bytes()[:-5])
    with Journal(path) as journal:
        assert journal.results == {"a": {"cycles": 1}}
        journal.append({"c": {"cycles": 3}})
    with Journal(path) as journal:
        assert journal.results == {"a": {"cycles": 1}, "c": {"cycles": 3}}
    with Journal(path, restart=True) as journal:
        assert journal.results == {}
    assert path.read_bytes() == b""


def test_best_points_are_compared_with_the_same_memories():
    def row(cost: int, cycles: int | None, latency: int = 4) -> dict[str, object]:
        memories = {"memory_latency": latency, "host_rate": None, "weight_rate": None}
        return {"network": "n", "batch": 1, "multiply_adders": cost, "cycles": cycles, **memories}

    rows = [row(16, 100), row(64, 50), row(64, 60), row(256, 55), row(256, None), row(64, 500, 100)]
    assert is_best(rows) == [True, True, False, False, False, True]


def test_no_parameters_are_one_configuration():
    assert expanded({}) == [{}]
