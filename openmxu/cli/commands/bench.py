"""``openmxu bench``: throughput of the array."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

import openmxu
from openmxu.arch import Config
from openmxu.cli.cases import Case, example_case, layer_case
from openmxu.cli.configuration import DEFAULTS, ConfigChoice, configured
from openmxu.cli.errors import InputError
from openmxu.cli.networks import load_network
from openmxu.cli.options import (
    DEFAULT_EFFORT,
    DEFAULT_LATENCY,
    AnySizeOption,
    DeviceName,
    DeviceOption,
    EffortOption,
    HostRateOption,
    JsonOption,
    LatencyOption,
    WeightRateOption,
)
from openmxu.cli.programs import measured_run, open_device
from openmxu.cli.report import print_json, print_rows, working

if TYPE_CHECKING:
    from openmxu.compiler.ir.network import Network
    from openmxu.program import Program

__all__ = ["conv_command", "gemm_command", "network_command"]

SeedOption = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Seed of the data and the stalls.")
]
StallOption = Annotated[
    float | None,
    typer.Option("--stall-probability", metavar="P", help="Chance of a stall, per cycle and memory port. Default: 0."),
]


@configured
def gemm_command(
    m: Annotated[int, typer.Argument(metavar="M", min=1, help="Rows of the input.")],
    k: Annotated[int, typer.Argument(metavar="K", min=1, help="Columns of the input, rows of the weights.")],
    n: Annotated[int, typer.Argument(metavar="N", min=1, help="Columns of the weights.")],
    device: DeviceOption = DeviceName.VERILATOR,
    choice: ConfigChoice = DEFAULTS,
    seed: SeedOption = 0,
    memory_latency: LatencyOption = None,
    host_rate: HostRateOption = None,
    weight_rate: WeightRateOption = None,
    effort: EffortOption = None,
    stall_probability: StallOption = None,
    json: JsonOption = False,
    any_size: AnySizeOption = False,
) -> None:
    """Multiply random matrices: M × K uint8 by K × N int8, requantized to uint8 in host memory.

    The cycles run from the first instruction to the last byte written. Utilization is useful multiply-adds ÷
    (S² × cycles). Mismatches are outputs that differ from a numpy model; there must be none.
    """
    from openmxu.compiler import gemm_input, gemm_network

    _measure_layer(
        {"bench": "gemm", "shape": [m, k, n]},
        "product",
        f"{m} × {k} × {n}",
        gemm_network(m, k, n, seed=seed),
        gemm_input(m, k, seed=seed),
        choice.config(),
        device=device,
        seed=seed,
        memory_latency=memory_latency,
        planning=_planning(effort, host_rate, weight_rate),
        stall_probability=stall_probability,
        json=json,
    )


@configured
def conv_command(
    inputs: Annotated[int, typer.Option("--inputs", metavar="C", min=1, help="Channels of the image.")] = 64,
    outputs: Annotated[int, typer.Option("--outputs", metavar="C", min=1, help="Channels of the result.")] = 64,
    height: Annotated[int, typer.Option("--height", metavar="H", min=1, help="Rows of the image.")] = 32,
    width: Annotated[int, typer.Option("--width", metavar="W", min=1, help="Columns of the image.")] = 32,
    kernel: Annotated[
        int, typer.Option("--kernel", metavar="K", min=1, help="Weights of K × K positions, padded by ⌊K ÷ 2⌋.")
    ] = 3,
    stride: Annotated[
        int, typer.Option("--stride", metavar="N", min=1, max=255, help="Pixels from output to output.")
    ] = 1,
    pool: Annotated[
        int, typer.Option("--pool", metavar="N", min=1, max=255, help="Maximum of N × N outputs; 1 for no pooling.")
    ] = 2,
    device: DeviceOption = DeviceName.VERILATOR,
    choice: ConfigChoice = DEFAULTS,
    seed: SeedOption = 0,
    memory_latency: LatencyOption = None,
    host_rate: HostRateOption = None,
    weight_rate: WeightRateOption = None,
    effort: EffortOption = None,
    stall_probability: StallOption = None,
    json: JsonOption = False,
    any_size: AnySizeOption = False,
) -> None:
    """Convolve a random uint8 image with int8 weights, requantize, and take the maximum of windows.

    Image and weights come from memory, the result goes to host memory. The cycles run from the first instruction to the
    last byte written. Utilization is useful multiply-adds ÷ (S² × cycles). Mismatches are outputs that differ from a
    numpy model; there must be none.
    """
    from openmxu.compiler import conv_input, conv_network

    try:
        network = conv_network(inputs, outputs, height, width, kernel=kernel, stride=stride, pool=pool, seed=seed)
    except ValueError as error:
        raise InputError(str(error)) from None
    description = {
        "bench": "conv",
        "channels": [inputs, outputs],
        "plane": [height, width],
        "kernel": kernel,
        "stride": stride,
        "pool": pool,
    }
    pooled = f", maximum of {pool} × {pool}" if pool > 1 else ""
    _measure_layer(
        description,
        "convolution",
        f"{kernel} × {kernel}, {inputs} → {outputs} channels on {height} × {width}, stride {stride}{pooled}",
        network,
        conv_input(inputs, height, width, seed=seed),
        choice.config(),
        device=device,
        seed=seed,
        memory_latency=memory_latency,
        planning=_planning(effort, host_rate, weight_rate),
        stall_probability=stall_probability,
        json=json,
    )


@configured
def network_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A folder of examples/: mnist, fashion, cifar10, …")],
    batch: Annotated[int, typer.Option("--batch", metavar="N", min=1, help="Inputs of one execution.")] = 8,
    device: DeviceOption = DeviceName.VERILATOR,
    choice: ConfigChoice = DEFAULTS,
    seed: SeedOption = 0,
    memory_latency: LatencyOption = None,
    host_rate: HostRateOption = None,
    weight_rate: WeightRateOption = None,
    effort: EffortOption = None,
    stall_probability: StallOption = None,
    json: JsonOption = False,
    any_size: AnySizeOption = False,
) -> None:
    """Run an example network on a batch of inputs, from host memory to host memory.

    The cycles run from the first instruction to the last byte written: the first layer, all weights and all transfers
    are part of them. Utilization is useful multiply-adds ÷ (S² × cycles). Mismatches are outputs that differ from a
    numpy model; there must be none.
    """
    config, planning = choice.config(), _planning(effort, host_rate, weight_rate)
    with working(f"Preparing {name}"):
        try:
            case = example_case(load_network(name), config, batch, seed, **planning)
        except openmxu.CompileError as error:
            raise InputError(f"{name}: {error}") from None
    _measure(
        {"bench": "network", "network": name, "batch": batch},
        "network",
        f"{name}, {batch} inputs,",
        case,
        device=device,
        seed=seed,
        memory_latency=memory_latency,
        planning=planning,
        stall_probability=stall_probability,
        json=json,
    )


def _planning(effort: int | None, host_rate: Fraction | None, weight_rate: Fraction | None) -> dict[str, Any]:
    """What the compiler plans with: effort of the search, and rates of the memories."""
    return {
        "effort": DEFAULT_EFFORT if effort is None else effort,
        "host_rate": host_rate,
        "weight_rate": weight_rate,
    }


def _measure_layer(
    description: dict[str, Any],
    what: str,
    text: str,
    network: Network,
    values: NDArray[np.uint8],
    config: Config,
    *,
    planning: dict[str, Any],
    **options: Any,
) -> None:
    """Compile a network of one input and one output, and measure it."""
    with working("Preparing"):
        try:
            case = layer_case(network, values, config, **planning)
        except openmxu.CompileError as error:
            raise InputError(str(error)) from None
    _measure(description, what, text, case, planning=planning, **options)


def _measure(
    description: dict[str, Any],
    what: str,
    text: str,
    case: Case,
    *,
    device: DeviceName,
    seed: int,
    memory_latency: int | None,
    planning: dict[str, Any],
    stall_probability: float | None,
    json: bool,
) -> None:
    """Run, compare and report."""
    if device in (DeviceName.SERIAL, DeviceName.GRPC):
        raise InputError(f"a bench measures simulations: --device {device} is for openmxu run and openmxu demo")
    program, config = case.program, case.program.config
    clocked = device is not DeviceName.INTERPRETER
    if clocked and memory_latency is None:
        memory_latency = DEFAULT_LATENCY
    rates = {name: planning[name] for name in ("host_rate", "weight_rate")}
    options = {"memory_latency": memory_latency, **rates, "stall_probability": stall_probability}
    if clocked and device is not DeviceName.MODEL:
        options["seed"] = seed
    with open_device(device, config, **options) as opened:
        results, measurement = measured_run(program, opened, case.inputs, f"Running {text} on {device.value}")
    outputs = sum(array.size for array in results.values())
    mismatches = case.mismatches(results)
    executions = -(-program.elements(results) // program.batch)
    roofline = _roofline(program, executions, measurement.cycles, memory_latency or DEFAULT_LATENCY, rates)
    result = {
        **description,
        "device": device.value,
        "memory_latency": memory_latency,
        **{name: None if rate is None else float(rate) for name, rate in rates.items()},
        "stall_probability": (stall_probability or 0.0) if clocked else None,
        **config.as_dict(),
        "effort": planning["effort"],
        "seed": seed,
        "outputs": outputs,
        "mismatches": mismatches,
        **measurement.as_dict(),
        **roofline,
    }
    if json:
        print_json(result)
    else:
        print_rows(
            [
                (what, f"{text} on an array of {config.size} × {config.size}"),
                ("device", device.value),
                *([("memory latency", f"{memory_latency} cycles")] if clocked else []),
                *((name.replace("_", " "), f"{float(rate):g} bytes/cycle") for name, rate in rates.items() if rate),
                ("outputs that differ", f"{mismatches:,} of {outputs:,}"),
                *measurement.as_rows(),
                *([] if roofline["bound"] is None else _roofline_rows(roofline)),
            ]
        )
    if mismatches:
        raise typer.Exit(1)


def _roofline(
    program: Program, executions: int, cycles: int | None, memory_latency: int, rates: dict[str, Any]
) -> dict[str, Any]:
    """The cycles of each part and their bound in all executions; all are ``None`` where no cycles are measured, or the
    cycle model does not know the core."""
    from openmxu.sim import cycle_model

    try:
        cycle_model.check_predicted(program.config)
    except cycle_model.UnpredictedError:
        cycles = None
    if cycles is None:
        return dict.fromkeys(("busy", "bound", "bound_by", "bound_ratio"))
    total = openmxu.report(program, memory_latency=memory_latency, **rates).total
    bound = executions * total.bound
    return {
        "busy": {part: executions * count for part, count in total.busy.items()},
        "bound": bound,
        "bound_by": total.bound_by,
        "bound_ratio": bound / cycles,
    }


def _roofline_rows(roofline: dict[str, Any]) -> list[tuple[str, str]]:
    bound = f"{roofline['bound']:,} cycles, {roofline['bound_ratio']:.3f} of the measured ones"
    return [("bound", bound), ("bound by", roofline["bound_by"])]
