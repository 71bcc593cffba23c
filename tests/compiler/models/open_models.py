"""A model that leaves dimensions of its input open."""

from __future__ import annotations

import numpy as np
import onnx

import openmxu
from tests.quantizer.float_models import FloatModel


def open_model(height: str = "height", width: str = "width") -> tuple[onnx.ModelProto, np.ndarray]:
    """A quantized convolution of images of any size; dimensions without a name are open as well."""
    network = FloatModel((3, 7, 9)).conv(3, 5, 3).add("Relu")
    model = openmxu.quantize(network.model(), network.inputs(8))
    for dim, name in zip(model.graph.input[0].type.tensor_type.shape.dim[2:], (height, width), strict=True):
        dim.Clear()
        if name:
            dim.dim_param = name
    del model.graph.value_info[:]
    del model.graph.output[0].type.tensor_type.shape.dim[2:]
    for name in ("out_height", "out_width"):
        model.graph.output[0].type.tensor_type.shape.dim.add().dim_param = name
    return model, network.inputs(3)
