"""``openmxu bench``."""

from __future__ import annotations

import pytest

from openmxu.arch import Config


def test_interpreter_computes_and_has_no_clock(openmxu):
    result = openmxu("bench", "gemm", 20, 30, 40, "--size", 4, "--device", "interpreter", "--json").json
    assert (result["shape"], result["size"], result["device"]) == ([20, 30, 40], 4, "interpreter")
    assert (result["outputs"], result["mismatches"]) == (800, 0)
    assert result["multiply_adds"] == 20 * 30 * 40
    assert result["cycles"] is result["utilization"] is result["cycles_per_second"] is None
    assert result["bound"] is result["bound_by"] is result["busy"] is result["bound_ratio"] is None


def test_modelled_device_predicts(openmxu):
    bench = ("bench", "gemm", 20, 30, 40, "--size", 4, "--device", "model", "--json")
    result = openmxu(*bench).json
    assert (result["device"], result["mismatches"], result["memory_latency"]) == ("model", 0, 4)
    assert result["bound"] <= result["cycles"] == result["counters"]["cycles"]
    assert result["bound"] == result["busy"][result["bound_by"]]
    slow = openmxu(*bench, "--memory-latency", 100, "--weight-rate", "1/2").json
    assert slow["cycles"] > result["cycles"]
    openmxu(*bench, "--stall-probability", 0.5).failed(
        2, "--stall-probability needs --device verilator: the cycle model"
    )


def test_programs_are_planned_for_the_rates(openmxu):
    """With a slow memory of weights fewer of them are read twice."""
    bench = ("--device", "model", "--json", "--size")
    for case in (("gemm", 64, 64, 64, *bench, 8), ("network", "mnist", "--batch", 2, *bench, 16)):
        fast, slow = (openmxu("bench", *case, *rate).json for rate in ((), ("--weight-rate", "1/2")))
        assert slow["counters"]["weight_bytes"] < fast["counters"]["weight_bytes"]


def test_effort(openmxu):
    bench = ("bench", "gemm", 16, 12, 5, "--size", 4, "--device", "model", "--json")
    usual, quick = openmxu(*bench).json, openmxu(*bench, "--effort", 0).json
    assert (usual["effort"], quick["effort"]) == (1, 0)
    assert usual["cycles"] < quick["cycles"]


def test_runs_are_told_apart(openmxu):
    sizes = ("--size", 4, "--lanes", 4, "--host-bus-bytes", 16, "--weight-queue", 3)
    result = openmxu("bench", "gemm", 3, 4, 5, "--device", "interpreter", "--json", *sizes).json
    config = Config.for_size(4, activation_lanes=4, host_data_bytes=16, weight_queue_depth=3)
    assert config.as_dict().items() <= result.items()


def test_what_bounds_a_product(openmxu):
    bench = ("bench", "gemm", 64, 16, 16, "--device", "model")
    for lanes, part in ((1, "activation"), (8, "array")):
        assert openmxu(*bench, "--lanes", lanes, "--json").json["bound_by"] == part
        assert f"\nbound by                     {part}\n" in openmxu(*bench, "--lanes", lanes).stdout


def test_a_core_that_the_cycle_model_does_not_know_has_no_bound(openmxu):
    bench = ("bench", "gemm", 8, 8, 8, "--size", 4, "--profile", "lite")
    result = openmxu(*bench, "--json").json
    assert (result["mismatches"], result["cycles"] > 0) == (0, True)
    assert result["bound"] is result["bound_by"] is result["busy"] is result["bound_ratio"] is None
    assert "bound" not in openmxu(*bench).stdout


def test_text_output(openmxu):
    result = openmxu("bench", "gemm", 3, 4, 5, "--device", "interpreter")
    assert (result.status, result.stderr) == (0, "")
    assert "3 × 4 × 5 on an array of 8 × 8" in result.stdout
    assert "0 of 15" in result.stdout


def test_simulated_rtl_measures(openmxu):
    bench = ("bench", "gemm", 20, 30, 40, "--size", 8, "--device", "verilator", "--json")
    result = openmxu(*bench).json
    assert result["mismatches"] == 0
    assert result["memory_latency"] == 4
    assert result["utilization"] == pytest.approx(20 * 30 * 40 / (8 * 8 * result["cycles"]))
    # 20 rows by four tiles of K and five of N.
    assert result["bound"] >= 20 * 4 * 5
    assert result["bound_ratio"] == pytest.approx(result["bound"] / result["cycles"])
    assert result["bound_ratio"] <= 1
    counters = result["counters"]
    assert counters["cycles"] == result["cycles"]
    kinds = ("array_active", "weight_stall", "weight_shift", "non_matrix")
    assert sum(counters[kind] for kind in kinds) == result["cycles"]
    assert result["cycles_per_second"] > 0

    slow = openmxu(*bench, "--memory-latency", 100, "--stall-probability", 0.5, "--seed", 3).json
    assert (slow["mismatches"], slow["memory_latency"], slow["stall_probability"]) == (0, 100, 0.5)
    assert slow["cycles"] > result["cycles"]
    slow = openmxu(*bench, "--weight-rate", "0.25").json
    assert (slow["mismatches"], slow["host_rate"], slow["weight_rate"]) == (0, None, 0.25)
    # Twenty tiles of 64 bytes.
    assert slow["cycles"] > slow["bound"] == 20 * 64 * 4


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([0, 1, 1], "'M'"),
        ([1, 1], "'N'"),
        ([1, 1, "x"], "'N'"),
        ([1, 1, 1, "--size", 3], "size must be a power of two, not 3"),
        ([1, 1, 1, "--stall-probability", 1.5], "stall_probability must be at least 0 and less than 1, not 1.5"),
        ([1, 1, 1, "--device", "interpreter", "--memory-latency", 3], "--memory-latency needs --device verilator"),
        ([1, 1, 1, "--device", "interpreter", "--host-rate", 3], "--host-rate needs --device verilator"),
    ],
)
def test_wrong_usage_is_one_line(openmxu, arguments, problem):
    openmxu("bench", "gemm", *arguments).failed(2, problem)


@pytest.mark.parametrize("latency", [0, 10_001, 10**21])
def test_latency_has_a_range(openmxu, latency):
    openmxu("bench", "gemm", 1, 1, 1, "--device", "model", "--memory-latency", latency).failed(2, "'--memory-latency'")


@pytest.mark.parametrize("option", ["--host-rate", "--weight-rate"])
@pytest.mark.parametrize("rate", ["x", "-1", "1/0", "1e-30", "0.0009", "1001", "1e400", "1e999999999", "0.12345678901"])
def test_rates_have_a_range(openmxu, option, rate):
    """Larger ones overflow, and the fraction of an exponent may not fit into memory."""
    openmxu("bench", "gemm", 1, 1, 1, "--device", "model", option, rate).failed(2, f"'{option}'", "from 1/1000 to 1000")


@pytest.mark.parametrize(
    "memories", [("--memory-latency", 10_000), ("--host-rate", "0.001", "--weight-rate", "1/1000")]
)
@pytest.mark.parametrize("device", ["model", "verilator"])
def test_slowest_memories_are_no_hang(openmxu, device, memories):
    result = openmxu("bench", "gemm", 6, 8, 8, "--device", device, "--json", *memories).json
    assert (result["mismatches"], result["cycles"] > 20_000) == (0, True)


def test_convolution_on_the_interpreter(openmxu):
    result = openmxu(
        "bench", "conv", "--size", 4, "--device", "interpreter", "--json", "--inputs", 5, "--outputs", 6
    ).json
    assert (result["bench"], result["channels"], result["plane"]) == ("conv", [5, 6], [32, 32])
    assert (result["kernel"], result["stride"], result["pool"]) == (3, 1, 2)
    assert (result["outputs"], result["mismatches"]) == (6 * 16 * 16, 0)
    assert result["multiply_adds"] == 9 * 5 * 6 * 32 * 32
    assert result["cycles"] is result["utilization"] is None


def test_convolution_text_output(openmxu):
    shape = ("--inputs", 1, "--outputs", 3, "--height", 9, "--width", 7, "--kernel", 5, "--stride", 2, "--pool", 1)
    result = openmxu("bench", "conv", *shape, "--device", "interpreter")
    assert (result.status, result.stderr) == (0, "")
    assert "5 × 5, 1 → 3 channels on 9 × 7, stride 2 on an array of 8 × 8" in result.stdout
    assert "0 of 60" in result.stdout


def test_convolution_on_the_rtl(openmxu):
    shape = ("--inputs", 16, "--outputs", 16, "--height", 16, "--width", 16)
    result = openmxu("bench", "conv", *shape, "--size", 8, "--json").json
    assert (result["mismatches"], result["memory_latency"]) == (0, 4)
    assert result["utilization"] == pytest.approx(9 * 16 * 16 * 256 / (8 * 8 * result["cycles"]))
    assert result["utilization"] > 0.85


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--inputs", 0], "'--inputs'"),
        (["--kernel", 2, "--height", 1, "--pool", 4], "nothing is left of 1 × 32 by a kernel of 2 and pooling of 4"),
        (["--outputs", 3, "--size", 4, "--preset", "tiny"], "exclude each other"),
        (
            ["--kernel", 99, "--inputs", 1, "--size", 2, "--outputs", 1],
            "unified_buffer_rows is 8192, but it needs at least",
        ),
    ],
)
def test_wrong_convolution_is_one_line(openmxu, arguments, problem):
    openmxu("bench", "conv", "--device", "interpreter", *arguments).failed(2, problem)


def test_bench_needs_a_name(openmxu):
    openmxu("bench").failed(2, "command")


def test_network_on_the_interpreter(openmxu):
    options = ("--batch", 3, "--size", 16, "--device", "interpreter")
    result = openmxu("bench", "network", "mnist", *options, "--json").json
    assert (result["bench"], result["network"], result["batch"]) == ("network", "mnist", 3)
    assert (result["outputs"], result["mismatches"]) == (30, 0)
    convolutions = 28 * 28 * 9 * 6 + 14 * 14 * 36 * 6 * 12 + 7 * 7 * 36 * 12 * 24
    assert result["multiply_adds"] == 3 * (convolutions + 7 * 7 * 24 * 200 + 200 * 10)
    assert "mnist, 3 inputs, on an array of 16 × 16" in openmxu("bench", "network", "mnist", *options).stdout


def test_unknown_network(openmxu):
    openmxu("bench", "network", "nothing").failed(2, "there is no network 'nothing'; there are: ", "cifar10", "mnist")
