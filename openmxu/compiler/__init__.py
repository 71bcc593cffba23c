"""Quantized ONNX models to programs."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from openmxu.arch.config import Config
from openmxu.compiler.benchmark import conv_input, conv_network, gemm, gemm_input, gemm_network
from openmxu.compiler.errors import CapacityError, CompileError, ModelError, ProfileError, UnsupportedOperatorError
from openmxu.compiler.ir.network import evaluate
from openmxu.compiler.onnx.importer import import_model, import_network, read_model
from openmxu.compiler.onnx.input_shapes import Shapes
from openmxu.compiler.recurrent.states import keep_states
from openmxu.compiler.target import Target
from openmxu.compiler.translate import compile_model, compile_network
from openmxu.program import Program
from openmxu.sim.memory_rate import Rate

if TYPE_CHECKING:
    import onnx

__all__ = [
    "CapacityError",
    "CompileError",
    "ModelError",
    "ProfileError",
    "UnsupportedOperatorError",
    "compile",
    "compile_network",
    "conv_input",
    "conv_network",
    "evaluate",
    "gemm",
    "gemm_input",
    "gemm_network",
    "import_model",
    "import_network",
]

_logger = logging.getLogger(__name__)


def compile(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    config: Config,
    *,
    batch: int | None = None,
    states: Mapping[str, str] | None = None,
    shapes: Shapes | None = None,
    strict: bool = False,
    effort: int = 1,
    host_rate: Rate = None,
    weight_rate: Rate = None,
) -> Program:
    """Compile a quantized network.

    Operators: QLinearConv, ConvInteger, QLinearMatMul, MatMulInteger, MaxPool; ONNX Runtime's QGemm, QLinearAdd,
    QLinearMul, QLinearAveragePool, QLinearGlobalAveragePool, QLinearSigmoid and QLinearLeakyRelu; and between
    DequantizeLinear and QuantizeLinear Conv, Gemm, MatMul, MaxPool, AveragePool, GlobalMaxPool, GlobalAveragePool, Add,
    Mul, Relu, Clip and every function of one real number. int8 and uint8 activations and weights, any zero points;
    int16 activations, zero point 0, of layers, maxima, sums and products; scales of weights per tensor or per output
    channel; convolutions with groups, strides, dilations and any padding. ``docs/compiler.md`` has the details.

    The host does QuantizeLinear of float32 inputs, DequantizeLinear of outputs, and the scaling of int32 sums that end
    the model (Gemm without QuantizeLinear; MatMulInteger, Cast, Mul). What else the device cannot do, the host does
    with ONNX Runtime, anywhere in the model; :attr:`Program.device_share` tells how much of the work remains the
    device's. Every integer is that of ONNX Runtime's integer kernels, but sums, products, averages and what is made of
    or to int16 may differ by 1. A real-valued bias is rounded to a multiple of input scale × weight scale.

    Parameters
    ----------
    model
        Path of an ONNX file, its bytes, or the loaded model.
    config
        The configuration to run on.
    batch
        Batch elements of one execution. Without it the model's own batch; where the model leaves it open one
        image, 64 rows, or 64 sequences of recurrent cells. :meth:`Program.run` takes any number.
    states
        Inputs that begin a recurrent node (``initial_h``, ``initial_c``), each with the output that the same node makes
        of it (``Y_h``, ``Y_c``). They are no inputs and outputs of the program; they stay in the unified buffer from
        one execution to the next, and :meth:`Program.session` makes use of them.
    shapes
        Values for dimensions beside the batch that the model leaves open: the dimension's name and its value, or an
        input's name and all its dimensions, of which 0 leaves one as it is.
    strict
        Refuse a model of which the host would compute anything.
    effort
        How long to search for a fast schedule: with 1 some seconds, with n up to n times as long, with 0 not at all.
    host_rate, weight_rate
        Bytes per cycle, an ``int`` or a ``Fraction``, of the memories to plan for: host memory in each direction, and
        weight memory; by default, and at most, a beat in every cycle. Results do not depend on them.

    Raises
    ------
    ModelError
        The model is damaged or invalid, or has no such states or dimensions.
    UnsupportedOperatorError
        Neither device nor host can compute an operator, or the device cannot and must; the message names node and
        operator and says what is supported.
    CapacityError
        The configuration's memories are too small, and the host cannot help.
    ProfileError
        The model needs what cores of the configuration's profile do not have.
    TypeError, ValueError
        A batch, an effort or a rate is no such number.
    OSError
        The file cannot be read.
    """
    target = Target.of(config, host_rate, weight_rate)
    start = time.perf_counter()
    partition = read_model(model, shapes)
    _logger.debug("read the model in %.2f s", time.perf_counter() - start)
    while True:
        imported = partition.model(strict=strict)
        try:
            return compile_model(keep_states(imported, states) if states else imported, target, batch, effort)
        except CapacityError as error:
            if strict or not partition.refuse(error):
                raise
            _logger.info("left to the host, because the device cannot do it: %s", error)
