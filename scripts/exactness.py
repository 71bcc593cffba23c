"""Compare random quantized operators with ONNX Runtime, output by output.

    python scripts/exactness.py
    python scripts/exactness.py --device verilator --size 8

QLinearMatMul, MatMulInteger, and Gemm between DequantizeLinear and QuantizeLinear; random shapes, types, zero points
and scales. On x86 processors without VNNI instructions, ONNX Runtime's kernels for int8 weights may saturate sums of
two products; the report counts where ONNX Runtime itself differs from the definition in integers.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import openmxu
from openmxu.compiler import evaluate, import_model
from openmxu.device import Device

OPERATORS = ("QLinearMatMul", "MatMulInteger", "Gemm")
ELEMENT_TYPES = {
    "uint8": TensorProto.UINT8,
    "int8": TensorProto.INT8,
    "int32": TensorProto.INT32,
    "float32": TensorProto.FLOAT,
}
DEFAULT_OUTPUTS = {"interpreter": 100_000, "verilator": 5_000}
DEFAULT_SIZES = {"interpreter": (2, 4, 8, 16, 32), "verilator": (8,)}


@dataclass(frozen=True)
class Case:
    """One model with an input for it, and a line that says what it is."""

    model: onnx.ModelProto
    values: NDArray[np.integer]
    text: str


@dataclass(frozen=True)
class Comparison:
    """Outputs of one case.

    Attributes
    ----------
    outputs, differing
        Compared with ONNX Runtime.
    undefined
        Outputs of ONNX Runtime that differ from the definition in integers: the processor's fault, not the device's.
    """

    outputs: int
    differing: int
    undefined: int


def make_model(
    nodes: Sequence[onnx.NodeProto],
    constants: dict[str, NDArray[np.generic]],
    columns: tuple[int, int],
    types: tuple[str, str],
    opset: int = 21,
) -> onnx.ModelProto:
    """A model from ``x`` to ``y`` with an open batch; ``columns`` and ``types`` of input and output."""
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info("x", ELEMENT_TYPES[types[0]], ["batch", columns[0]])],
        [helper.make_tensor_value_info("y", ELEMENT_TYPES[types[1]], ["batch", columns[1]])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def random_bytes(random: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> NDArray[np.integer]:
    """Every value of an 8-bit type equally often."""
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max + 1, shape).astype(dtype)


def random_case(random: np.random.Generator, operator: str, shape: tuple[int, int, int]) -> Case:
    """A model of one ``operator`` for M × K by K × N, everything but the operator and the shape random."""
    m, k, n = shape
    input_type, weight_type = (str(random.choice(["uint8", "int8"])) for _ in range(2))
    if operator != "MatMulInteger" and input_type == "int8":
        weight_type = "int8"  # ONNX Runtime has no integer kernel for int8 by uint8 here
    per_column = bool(random.integers(2))
    channels = (n,) if per_column else ()
    text = f"{operator} {m}×{k}×{n} {input_type}×{weight_type} {'per column' if per_column else 'per tensor'}"
    constants: dict[str, NDArray[np.generic]] = {
        "w": random_bytes(random, weight_type, (k, n)),
        "w_zero_point": random_bytes(random, weight_type, channels),
        "x_zero_point": random_bytes(random, input_type, ()),
    }
    output_type = input_type
    if operator == "MatMulInteger":
        output_type = "int32"
        nodes = [helper.make_node(operator, ["x", "w", "x_zero_point", "w_zero_point"], ["y"])]
    else:
        constants |= _scales(random, k, channels)
        constants["y_zero_point"] = random_bytes(random, output_type, ())
        if operator == "QLinearMatMul":
            names = ["x", "x_scale", "x_zero_point", "w", "w_scale", "w_zero_point", "y_scale", "y_zero_point"]
            nodes = [helper.make_node(operator, names, ["y"])]
        else:
            unit = (constants["x_scale"] * constants["w_scale"]).astype(np.float32)
            constants["b"] = random.integers(-(2**16), 2**16, n).astype(np.int32)
            constants["b_scale"], constants["b_zero_point"] = unit, np.zeros(channels, np.int32)
            nodes = [_dequantize("x", 1), _dequantize("w", 1), _dequantize("b", 0)]
            nodes.append(helper.make_node("Gemm", ["x_real", "w_real", "b_real"], ["y_real"]))
            nodes.append(helper.make_node("QuantizeLinear", ["y_real", "y_scale", "y_zero_point"], ["y"]))
    model = make_model(nodes, constants, (k, n), (input_type, output_type))
    return Case(model, random_bytes(random, input_type, (m, k)), text)


def _scales(random: np.random.Generator, inputs: int, channels: tuple[int, ...]) -> dict[str, NDArray[np.float32]]:
    """Scales with which outputs fill the range of a byte, or saturate, or are few different numbers."""
    x_scale, w_scale = random.uniform(1e-4, 1e-1), random.uniform(1e-4, 1e-1, channels)
    spread = 10.0 ** random.uniform(-0.5, 1) * 100 * 100 * np.sqrt(inputs) / 64
    y_scale = x_scale * float(np.mean(w_scale)) * spread
    return {
        "x_scale": np.float32(x_scale),
        "w_scale": np.asarray(w_scale, np.float32),
        "y_scale": np.float32(y_scale),
    }


def _dequantize(name: str, axis: int) -> onnx.NodeProto:
    return helper.make_node(
        "DequantizeLinear", [name, f"{name}_scale", f"{name}_zero_point"], [f"{name}_real"], axis=axis
    )


def reference(model: onnx.ModelProto, values: NDArray[np.generic], optimize: bool = True) -> NDArray[np.generic]:
    """What ONNX Runtime's CPU provider computes."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimize else levels.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {"x": values})
    return result


def compare(case: Case, device: Device) -> Comparison:
    """Run a case on a device and in ONNX Runtime."""
    program = openmxu.compile(case.model, device.config, batch=len(case.values))
    result = program.run(device, case.values)["y"]
    expected = reference(case.model, case.values)
    if (result.dtype, result.shape) != (expected.dtype, expected.shape):
        raise AssertionError(f"{case.text}: {result.dtype} {result.shape}, not {expected.dtype} {expected.shape}")
    defined = evaluate(import_model(case.model), case.values)
    return Comparison(result.size, int((result != expected).sum()), int((defined != expected).sum()))


def cases(random: np.random.Generator, largest: int) -> Iterator[Case]:
    """Cases without end, dimensions up to ``largest``, small ones as often as large ones."""
    while True:
        operator = OPERATORS[random.integers(len(OPERATORS))]
        m, k, n = (int(value) for value in np.exp(random.uniform(0, np.log(largest + 1), 3)))
        yield random_case(random, operator, (m, k, n))


def main() -> None:
    """Compare until there are enough outputs; exit status 1 when one differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=DEFAULT_OUTPUTS, default="interpreter")
    parser.add_argument("--size", type=int, action="append", help="array size; may be given several times")
    parser.add_argument("--outputs", type=int, help="compare at least so many outputs")
    parser.add_argument("--largest", type=int, default=150, help="largest dimension (default 150)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    sizes = arguments.size or DEFAULT_SIZES[arguments.device]
    wanted = arguments.outputs or DEFAULT_OUTPUTS[arguments.device]
    outputs = differing = undefined = models = 0
    for size in sizes:
        config = openmxu.Config.for_size(size)
        stream = cases(np.random.default_rng((arguments.seed, size)), arguments.largest)
        target = outputs + -(-wanted // len(sizes))
        with openmxu.open_device(arguments.device, config) as device:
            while outputs < target:
                case = next(stream)
                result = compare(case, device)
                if result.differing:
                    print(f"S={size}: {case.text}: {result.differing} of {result.outputs} outputs differ")
                outputs += result.outputs
                differing += result.differing
                undefined += result.undefined
                models += 1
    print(
        f"{arguments.device}, S = {', '.join(map(str, sizes))}: {models} models, {outputs} outputs, {differing} differ"
    )
    if undefined:
        print(f"{undefined} outputs of ONNX Runtime differ from the definition: see --help on VNNI")
    raise SystemExit(1 if differing else 0)


if __name__ == "__main__":
    main()
