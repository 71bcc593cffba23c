"""Sessions of ONNX Runtime that compute quantized layers exactly on every processor."""

from __future__ import annotations

import functools
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import onnxruntime

__all__ = ["exact_session"]


def exact_session(
    model: bytes | str | PathLike[str], options: onnxruntime.SessionOptions | None = None
) -> onnxruntime.InferenceSession:
    """A session on the CPU whose sums of products are exact integers.

    x86 processors with AVX2 and without VNNI multiply unsigned by signed bytes with an instruction that saturates the
    sum of two products to 16 bits. There signed weights of unsigned inputs become unsigned ones, for which ONNX Runtime
    has another instruction.

    Parameters
    ----------
    model
        Serialized, or the path of a file.
    options
        As for any session.

    Raises
    ------
    ImportError
        ONNX Runtime is not installed.
    Exception
        It refuses the model.
    """
    import onnxruntime

    if not _saturates():
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    # Imported here because other processors do without.
    import onnx

    from openmxu.unsigned_weights import with_unsigned_weights

    proto = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
    content = with_unsigned_weights(proto).SerializeToString()
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


@functools.cache
def _saturates() -> bool:
    """Whether ONNX Runtime saturates sums on this processor."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    left = helper.make_tensor_value_info("left", TensorProto.UINT8, (4, 64))
    sums = helper.make_tensor_value_info("sums", TensorProto.INT32, (4, 16))
    right = numpy_helper.from_array(np.full((64, 16), 127, np.int8), "right")
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["left", "right"], ["sums"])], "probe", [left], [sums], [right]
    )
    opsets = [helper.make_opsetid("", 13)]
    content = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"left": np.full((4, 64), 255, np.uint8)})
    return bool((found != 64 * 255 * 127).any())
