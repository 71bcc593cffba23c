"""One network: quantized, compiled, run on the interpreter, and compared with ONNX Runtime."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import onnx

import openmxu
from openmxu.comparison import Difference, compare_layers
from openmxu.segments.graph_runner import GraphRunner
from scripts.zoo.catalogue import Network
from scripts.zoo.fetch import FetchError, fetch
from scripts.zoo.layer_counts import LayerCounts
from scripts.zoo.samples import samples

__all__ = ["Setting", "Verdict", "judge", "judge_or_reason"]

_FAILURES = (FetchError, openmxu.CompileError, openmxu.InputError, openmxu.DeviceError, ValueError)

_CELLS = ("GRU", "LSTM")


@dataclass(frozen=True)
class Verdict:
    """What became of a network.

    Attributes
    ----------
    outputs, differing
        All numbers of the outputs, and those that are not ONNX Runtime's.
    largest
        The largest difference, as a share of the largest number of its output.
    why
        Where the results differ: the kinds of layers that can, and how often ONNX Runtime differs from itself.
    share, segments, cycles
        The device's share of the multiplications, the number of segments, and the cycles predicted for one execution.
    seconds
        For quantizing, compiling and running.
    layers
        Compared one by one, if wanted.
    """

    outputs: int
    differing: int
    largest: float
    why: str
    share: float
    segments: int
    cycles: int
    seconds: tuple[float, float, float]
    layers: LayerCounts | None = None


@dataclass(frozen=True)
class Setting:
    """A configuration, and whether every layer is compared alone."""

    config: openmxu.Config
    by_layer: bool


def judge_or_reason(setting: Setting, network: Network) -> Verdict | str:
    """The verdict on a network, or why there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return judge(network, setting.config, by_layer=setting.by_layer)
        except _FAILURES as error:
            return f"{type(error).__name__}: {error}"


def judge(network: Network, config: openmxu.Config, *, by_layer: bool) -> Verdict:
    """Try a network; whatever goes wrong is raised.

    Raises
    ------
    scripts.zoo.fetch.FetchError, openmxu.CompileError, openmxu.InputError, openmxu.DeviceError
    """
    model = onnx.load(fetch(network))
    times = [time.perf_counter()]
    if not any(node.op_type == "QuantizeLinear" for node in model.graph.node):
        model = openmxu.quantize(model, samples(network, network.calibration, seed=0))
    times.append(time.perf_counter())
    program = openmxu.compile(model, config)
    times.append(time.perf_counter())
    inputs = samples(network, network.batch, seed=1)
    with openmxu.open_device("interpreter", config) as device:
        results = program.run(device, inputs)
    times.append(time.perf_counter())
    serialized = model.SerializeToString()
    wanted = GraphRunner(serialized, optimize=True).run(inputs)
    layers = None
    if by_layer and not program.inputs[0].is_whole:
        layers = LayerCounts.of(compare_layers(model, inputs))
    difference = Difference.of(list(results.values()), wanted)
    why = ""
    if difference.differing:
        unoptimized = Difference.of(GraphRunner(serialized, optimize=False).run(inputs), wanted)
        why = _why(model, unoptimized, layers)
    return Verdict(
        outputs=difference.outputs,
        differing=difference.differing,
        largest=difference.relative,
        why=why,
        share=program.device_share,
        segments=len(program.segments),
        cycles=openmxu.report(program).total.cycles,
        seconds=(times[1] - times[0], times[2] - times[1], times[3] - times[2]),
        layers=layers,
    )


def _why(model: onnx.ModelProto, unoptimized: Difference, layers: LayerCounts | None) -> str:
    """``unoptimized``: ONNX Runtime's results without its optimizations against those with them."""
    cells = {node.op_type for node in model.graph.node if node.op_type in _CELLS}
    reasons = [f"{name}: numbers of its own" for name in sorted(cells)]
    if unoptimized.differing:
        reasons.append(f"ONNX Runtime without its optimizations: {unoptimized.differing:,} differ")
    if layers is not None:
        for kind, count in layers.differing.items():
            if count:
                reasons.append(f"{kind}: {count} of {layers.outputs[kind]:,}")
        for kind, count in layers.ambiguous.items():
            if count:
                reasons.append(f"{kind}: {count} of {layers.outputs[kind]:,}, where ONNX Runtime's settings differ")
    return "; ".join(reasons)
