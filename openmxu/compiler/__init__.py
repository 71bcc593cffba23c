"""Quantized ONNX models to programs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from openmxu.arch.config import Config
from openmxu.compiler.benchmark import gemm, gemm_input, gemm_network
from openmxu.compiler.errors import CapacityError, CompileError, ModelError, UnsupportedOperatorError
from openmxu.compiler.importer import import_model
from openmxu.compiler.network import evaluate
from openmxu.compiler.translate import compile_network
from openmxu.program import Program

if TYPE_CHECKING:
    import onnx

__all__ = [
    "CapacityError",
    "CompileError",
    "ModelError",
    "UnsupportedOperatorError",
    "compile",
    "compile_network",
    "evaluate",
    "gemm",
    "gemm_input",
    "gemm_network",
    "import_model",
]


def compile(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto, config: Config, *, batch: int | None = None
) -> Program:
    """Compile a quantized dense network.

    The model is a chain from one input to one output: QLinearMatMul, MatMulInteger, or MatMul and Gemm between
    DequantizeLinear and QuantizeLinear, with constant bias, Relu and Clip; int8 and uint8 activations and weights, any
    zero points, scales per tensor or per output column. The host does QuantizeLinear of a float32 input,
    DequantizeLinear of the output, and the scaling of int32 sums that end the model (Gemm without QuantizeLinear;
    MatMulInteger, Cast, Mul). Every integer is that of ONNX Runtime's integer kernels. A real-valued bias
    is rounded to a multiple of input scale × weight scale.

    Parameters
    ----------
    model
        Path of an ONNX file, its bytes, or the loaded model.
    config
        The configuration to run on.
    batch
        Batch elements of one execution. Without it the model's own batch, or 64 where the model leaves it open.
        :meth:`Program.run` takes any number.

    Raises
    ------
    ModelError
        The model is damaged or invalid.
    UnsupportedOperatorError
        An operator, or a use of one, is not supported; the message names node and operator and says what is.
    CapacityError
        The configuration's memories are too small.
    OSError
        The file cannot be read.
    """
    return compile_network(import_model(model), config, batch)
