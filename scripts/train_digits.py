"""Train the demo's network on scikit-learn's handwritten digits, quantize it, and write model and test split.

    python scripts/train_digits.py [--output openmxu/models]

Everything random is seeded; another version of scikit-learn may still train slightly different weights.
"""

from __future__ import annotations

import argparse
import io
import warnings
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from openmxu.compiler import evaluate, import_network
from openmxu.models import DIGITS_MODEL, DIGITS_TEST_SPLIT
from openmxu.program_file import write_atomically
from openmxu.segments.host_tensor import quantize

SEED = 2017
TEST_IMAGES = 360
HIDDEN = 64
EPOCHS = 300
TRAINED_RANGE = 8
"""Pixels are divided by this for training; the first layer's weights undo it."""

LEAST_ACCURACY = 0.95
PIXEL_SCALE = np.float32(1 / 8)
"""Pixels count from 0 to 16, so that eighths are exact."""


def main() -> None:
    """Train, quantize, check, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=DIGITS_MODEL.parent, help="folder to write to")
    folder = parser.parse_args().output
    train_images, test_images, train_labels, test_labels = split()
    weights, biases = train(train_images, train_labels)
    model = quantized_model(weights, biases, train_images)
    accuracy = integer_accuracy(model, test_images, test_labels)
    print(f"accuracy on {len(test_labels)} test images: {accuracy:.4f}")
    if accuracy < LEAST_ACCURACY:
        raise SystemExit(f"less than {LEAST_ACCURACY}: nothing written")
    write_atomically(folder / DIGITS_MODEL.name, model.SerializeToString(deterministic=True))
    archive = io.BytesIO()
    np.savez_compressed(archive, images=test_images.astype(np.uint8), labels=test_labels.astype(np.uint8))
    write_atomically(folder / DIGITS_TEST_SPLIT.name, archive.getvalue())


def split() -> list[NDArray[np.generic]]:
    """Training images, test images, training labels, test labels; every digit equally often in both."""
    digits = load_digits()
    return train_test_split(
        digits.data.astype(np.float32), digits.target, test_size=TEST_IMAGES, stratify=digits.target, random_state=SEED
    )


def train(images: NDArray[np.float32], labels: NDArray[np.int64]) -> tuple[list[NDArray], list[NDArray]]:
    """Weights and biases of a perceptron with one hidden ReLU layer."""
    network = MLPClassifier((HIDDEN,), alpha=0.3, max_iter=EPOCHS, random_state=SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # these epochs are enough, converged or not
        network.fit(images / TRAINED_RANGE, labels)
    first, *others = network.coefs_
    return [first / TRAINED_RANGE, *others], network.intercepts_


def quantized_model(weights: list[NDArray], biases: list[NDArray], images: NDArray[np.float32]) -> onnx.ModelProto:
    """The network between QuantizeLinear and DequantizeLinear, as ONNX Runtime's static quantizer writes it.

    uint8 activations; int8 weights with a scale for each output. There is no Relu: the zero point of its output is
    0, so that saturation does the same.
    """
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, NDArray[np.generic]] = {"image_scale": PIXEL_SCALE, "image_zero_point": np.uint8(0)}
    nodes += _requantized("image", "image")
    values, scale, name = images.astype(np.float64), PIXEL_SCALE, "image"
    for index, (matrix, bias) in enumerate(zip(weights, biases, strict=True)):
        layer, last = f"dense{index}", index == len(weights) - 1
        values = values @ matrix + bias
        low, high = (values.min(), values.max()) if last else (0.0, values.max())
        values = values if last else np.maximum(values, 0)
        output_scale = np.float32((high - low) / 255)
        weight_scale = (np.abs(matrix).max(axis=0) / 127).astype(np.float32)
        bias_scale = (scale * weight_scale).astype(np.float32)
        constants |= {
            f"{layer}_weights": np.rint(matrix / weight_scale).astype(np.int8),
            f"{layer}_weights_scale": weight_scale,
            f"{layer}_weights_zero_point": np.zeros(len(bias), np.int8),
            f"{layer}_bias": np.rint(bias / bias_scale).astype(np.int32),
            f"{layer}_bias_scale": bias_scale,
            f"{layer}_bias_zero_point": np.zeros(len(bias), np.int32),
            f"{layer}_scale": output_scale,
            f"{layer}_zero_point": np.uint8(np.rint(-low / output_scale)),
        }
        nodes += [
            _dequantize(f"{layer}_weights", axis=1),
            _dequantize(f"{layer}_bias", axis=0),
            helper.make_node(
                "Gemm",
                [f"{name}_dequantized", f"{layer}_weights_dequantized", f"{layer}_bias_dequantized"],
                [f"{layer}_sums"],
                name=layer,
            ),
            *_requantized(f"{layer}_sums", layer),
        ]
        scale, name = output_scale, layer
    nodes[-1].output[0] = "logits"
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", len(weights[0])])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", len(biases[-1])])],
        [numpy_helper.from_array(np.asarray(array), key) for key, array in constants.items()],
    )
    model = helper.make_model(graph, producer_name="openmxu", opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def _requantized(source: str, name: str) -> list[onnx.NodeProto]:
    """QuantizeLinear of ``source`` and DequantizeLinear again."""
    quantizer = helper.make_node(
        "QuantizeLinear",
        [source, f"{name}_scale", f"{name}_zero_point"],
        [f"{name}_quantized"],
        name=f"{name}_quantize",
    )
    return [
        quantizer,
        helper.make_node(
            "DequantizeLinear",
            [f"{name}_quantized", f"{name}_scale", f"{name}_zero_point"],
            [f"{name}_dequantized"],
            name=f"{name}_dequantize",
        ),
    ]


def _dequantize(name: str, axis: int) -> onnx.NodeProto:
    return helper.make_node(
        "DequantizeLinear",
        [name, f"{name}_scale", f"{name}_zero_point"],
        [f"{name}_dequantized"],
        name=f"{name}_dequantize",
        axis=axis,
    )


def integer_accuracy(model: onnx.ModelProto, images: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
    """Fraction of the images that the quantized network classifies correctly."""
    network = import_network(model)
    pixels = quantize(images, PIXEL_SCALE, 0, "uint8")
    return float((evaluate(network, pixels).argmax(axis=1) == labels).mean())


if __name__ == "__main__":
    main()
