"""``openmxu bench``: what the array gets done."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from openmxu.cli.errors import InputError
from openmxu.cli.options import DeviceName, DeviceOption, JsonOption, PresetOption, SizeOption, make_config
from openmxu.cli.programs import measured_run, open_device
from openmxu.cli.report import print_json, print_rows, working
from openmxu.compiler import CompileError, evaluate, gemm, gemm_input, gemm_network

__all__ = ["DEFAULT_LATENCY", "gemm_command"]

DEFAULT_LATENCY = 4
"""Cycles from a request to the first beat of its data."""


def gemm_command(
    m: Annotated[int, typer.Argument(metavar="M", min=1, help="Rows of the input.")],
    k: Annotated[int, typer.Argument(metavar="K", min=1, help="Columns of the input, rows of the weights.")],
    n: Annotated[int, typer.Argument(metavar="N", min=1, help="Columns of the weights.")],
    device: DeviceOption = DeviceName.VERILATOR,
    size: SizeOption = None,
    preset: PresetOption = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Of the data and the stalls.")
    ] = 0,
    memory_latency: Annotated[
        int | None,
        typer.Option(
            "--memory-latency", metavar="CYCLES", min=1, help=f"From request to data. Default: {DEFAULT_LATENCY}."
        ),
    ] = None,
    stall_probability: Annotated[
        float | None,
        typer.Option("--stall-probability", metavar="P", help="Of a stall, per cycle and memory port. Default: 0."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Multiply random matrices: M × K uint8 by K × N int8, requantized to uint8 in host memory.

    The cycles run from the first instruction to the last byte written. Utilization is useful multiply-adds ÷
    (S² × cycles). Mismatches are outputs that differ from a numpy model; there must be none.
    """
    config = make_config(size, preset)
    with working("Preparing"):
        try:
            program = gemm(m, k, n, config, seed=seed)
        except CompileError as error:
            raise InputError(str(error)) from None
        inputs = gemm_input(m, k, seed=seed)
        expected = evaluate(gemm_network(m, k, n, seed=seed), inputs)
    clocked = device is DeviceName.VERILATOR
    if clocked and memory_latency is None:
        memory_latency = DEFAULT_LATENCY
    options = {"memory_latency": memory_latency, "stall_probability": stall_probability}
    if clocked:
        options["seed"] = seed
    with open_device(device, config, **options) as opened:
        outputs, measurement = measured_run(program, opened, inputs, f"Running {m} × {k} × {n} on {device.value}")
    mismatches = int(np.count_nonzero(outputs != expected))
    result = {
        "bench": "gemm",
        "shape": [m, k, n],
        "device": device.value,
        "memory_latency": memory_latency,
        "stall_probability": (stall_probability or 0.0) if clocked else None,
        "host_data_bytes": config.host_data_bytes,
        "weight_data_bytes": config.weight_data_bytes,
        "seed": seed,
        "outputs": outputs.size,
        "mismatches": mismatches,
        **measurement.as_dict(),
    }
    if json:
        print_json(result)
    else:
        print_rows(
            [
                ("product", f"{m} × {k} × {n} on an array of {config.size} × {config.size}"),
                ("device", device.value),
                *([("memory latency", f"{memory_latency} cycles")] if clocked else []),
                ("outputs that differ", f"{mismatches:,} of {outputs.size:,}"),
                *measurement.as_rows(),
            ]
        )
    if mismatches:
        raise typer.Exit(1)
