"""Weights through both ports: the same results in fewer cycles where weights are what a program waits for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import openmxu
from openmxu.arch.events import Counter
from openmxu.arch.isa import Instruction, Opcode
from openmxu.compiler import compile_network, gemm_network
from openmxu.compiler.plan.weight_ports import WeightPorts
from openmxu.sim.cycle_model import predict
from tests.compiler.models.networks import differing, random_network, random_rows
from tests.compiler.models.random_cells import KINDS, cell_network, random_cell
from tests.compiler.models.segmented_models import between_layers
from tests.compiler.recurrent.test_cells import differences, random_values

NARROW = openmxu.Config.for_size(8, profile="full", host_data_bytes=4, weight_data_bytes=4)
"""A tile takes 16 cycles to fetch, and 8 to load."""

WIDER = openmxu.Config.for_size(16, profile="full")
"""32 cycles, and 16."""

STANDARD = NARROW.replace(profile="standard")


def instructions_of(program: openmxu.Program, opcode: Opcode) -> Iterator[Instruction]:
    return (item for item in program.instructions if item.word & 0xFF == opcode)


@pytest.mark.parametrize("rows", [1, 3, 15, 16, 40])
@pytest.mark.parametrize("dimensions", [(200, 60), (30, 90, 110, 20), (5, 800)], ids=str)
def test_products_of_few_rows(dimensions: tuple[int, ...], rows: int) -> None:
    random = np.random.default_rng(rows)
    network = random_network(random, dimensions)
    assert differing(network, NARROW, random_rows(random, network, rows)) == 0


@pytest.mark.parametrize("rows", [400, 600, 2000])
def test_small_unified_buffers(rows: int) -> None:
    """The ring takes an eighth at most."""
    config = NARROW.replace(unified_buffer_rows=rows)
    random = np.random.default_rng(rows)
    network = random_network(random, (120, 160, 80))
    assert differing(network, config, random_rows(random, network, 3)) == 0
    assert WeightPorts.of(network, 3, 16, config).ring.count <= rows // 8


@pytest.mark.parametrize("kind", KINDS)
def test_cells(kind: str) -> None:
    random = np.random.default_rng(KINDS.index(kind))
    network = cell_network(random_cell(random, kind, 9, 48), 9, 3)
    assert any(instructions_of(compile_network(network, NARROW, 2), Opcode.LOAD_WEIGHTS))
    assert set(differences(network, NARROW, random_values(random, network, 2), 2).values()) == {0}


@pytest.mark.parametrize(("config", "gain"), [(NARROW, 0.08), (WIDER, 0.2)], ids=["8", "16"])
def test_some_of_the_weights_come_through_the_host_port(config: openmxu.Config, gain: float) -> None:
    """More of them where a tile takes long enough to hide the instructions that load it."""
    network, standard = random_network(np.random.default_rng(0), (400, 240)), config.replace(profile="standard")
    both, one = (compile_network(network, item, 2) for item in (config, standard))
    tiles = [sum(item["tiles"] for item in instructions_of(program, Opcode.READ_WEIGHTS)) for program in (both, one)]
    loaded = len(list(instructions_of(both, Opcode.LOAD_WEIGHTS)))
    assert tiles[0] + loaded == tiles[1]
    assert 0.3 < loaded / tiles[1] < 0.5
    total = openmxu.report(both).total
    assert total.weight_bytes == tiles[0] * config.tile_bytes
    fetch = config.tile_bytes // config.weight_data_bytes
    assert total.busy["weights"] == max(tiles[0] * fetch, tiles[1] * config.size) <= total.cycles
    assert predict(both.instructions, config).cycles < (1 - gain) * predict(one.instructions, standard).cycles


def test_nothing_is_copied_where_it_gains_nothing() -> None:
    network = random_network(np.random.default_rng(0), (400, 240))
    wide = NARROW.replace(weight_data_bytes=8)
    few = random_network(np.random.default_rng(0), (8, 8))
    cases = [(network, wide, 2), (network, STANDARD, 2), (network, NARROW, 16), (few, NARROW, 2)]
    for other, config, batch in cases:
        program = compile_network(other, config, batch)
        assert not any(instructions_of(program, Opcode.LOAD_WEIGHTS))
        assert WeightPorts.of(other, batch, 16, config).ring.count == 0
    standard = compile_network(network, STANDARD, 16)
    assert compile_network(network, NARROW, 16).host_bytes == standard.host_bytes


@pytest.mark.parametrize("latency", [4, 100])
def test_both_ports_are_busy(latency: int) -> None:
    """Weights come at nearly the rate of both memories together, also where these answer late."""
    program = compile_network(gemm_network(8, 600, 400), WIDER)
    total = openmxu.report(program, memory_latency=latency).total
    assert total.bound > 0.92 * total.cycles
    assert min(total.busy["weights"], total.busy["host"]) > 0.75 * total.bound


def test_most_come_through_the_host_port_where_weight_memory_is_slow() -> None:
    network = gemm_network(8, 600, 400)
    programs = [compile_network(network, WIDER, weight_rate=rate) for rate in (None, 1)]
    reads = [sum(item["tiles"] for item in instructions_of(program, Opcode.READ_WEIGHTS)) for program in programs]
    loads = [len(list(instructions_of(program, Opcode.LOAD_WEIGHTS))) for program in programs]
    assert sum(reads[:1] + loads[:1]) == sum(reads[1:] + loads[1:])
    assert loads[0] < reads[0]
    assert loads[1] > 5 * reads[1]


def test_nothing_is_copied_while_the_input_is_read() -> None:
    """The host port then has enough to do; a second layer has its first copies at once."""
    network = random_network(np.random.default_rng(0), (400, 240, 240))
    rows = 12
    ports = WeightPorts.of(network, rows, 16, WIDER)
    input_cycles, fetch = rows * 400 // WIDER.host_data_bytes, WIDER.tile_bytes // WIDER.weight_data_bytes
    assert ports.alone == input_cycles // fetch
    copied = [ports.copied(operation, range(100, 400)) for operation in (0, 1)]
    assert [tiles[0] - 100 - ports.fetched for tiles in copied] == [ports.alone, 0]
    assert not ports.copied(0, range(100, 100 + ports.alone))


def test_copies_of_a_later_segment() -> None:
    """Copies lie behind the constants of their own segment."""
    model = between_layers()
    program, standard = (openmxu.compile(model, config, batch=2) for config in (NARROW, STANDARD))
    values = {
        spec.name: np.random.default_rng(0).normal(size=(2, *spec.shape)).astype(spec.dtype) for spec in program.inputs
    }
    results = []
    for compiled in (program, standard):
        with openmxu.open_device("interpreter", compiled.config) as device:
            results.append(compiled.run(device, values))
    for name, expected in results[1].items():
        assert np.array_equal(results[0][name], expected)


@pytest.mark.build
def test_rtl() -> None:
    """As predicted, with the interpreter's results."""
    random = np.random.default_rng(0)
    network = random_network(random, (400, 240))
    program, rows = compile_network(network, NARROW, 2), random_rows(random, network, 2)
    with openmxu.open_device("interpreter", NARROW) as interpreter:
        expected = program.run(interpreter, rows)["y"]
    with openmxu.open_device("verilator", NARROW) as device:
        assert np.array_equal(program.run(device, rows)["y"], expected)
        cycles = device.counters[Counter.CYCLES]
    assert predict(program.instructions, NARROW).cycles == pytest.approx(cycles, rel=0.005)


@pytest.mark.build
def test_rtl_of_a_cell() -> None:
    """Tiles are loaded while the activation unit reads elements of the cell, which delays them as predicted."""
    random = np.random.default_rng(0)
    network = cell_network(random_cell(random, "gru", 9, 96), 9, 3)
    program, values = compile_network(network, WIDER, 2), random_values(random, network, 2)
    assert any(instructions_of(program, Opcode.LOAD_WEIGHTS))
    with openmxu.open_device("verilator", WIDER) as device:
        program.run(device, values)
        cycles = device.counters[Counter.CYCLES]
    assert predict(program.instructions, WIDER).cycles == pytest.approx(cycles, rel=0.002)
