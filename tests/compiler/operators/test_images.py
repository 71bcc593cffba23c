"""Every supported pattern on images gives the numbers of ONNX Runtime after compilation, on the interpreter."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import openmxu
from openmxu.compiler import import_network
from openmxu.compiler.ir.fusion import fuse
from scripts.random_models import random_bytes
from tests.compiler.models.graphs import dequantize, node, quantize
from tests.compiler.models.images import BATCH, CHANNELS, HEIGHT, WIDTH, differing, image_model, parameters

CONFIG = openmxu.Config.for_size(4)
X = ("x_scale", "x_zero_point")


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(5)


def images(random: np.random.Generator, dtype: str = "uint8", channels: int = CHANNELS) -> np.ndarray:
    return random_bytes(random, dtype, (BATCH, channels, HEIGHT, WIDTH))


def qlinear_conv(output: str = "y", **attributes: object) -> onnx.NodeProto:
    names = "x x_scale x_zero_point w w_scale w_zero_point h_scale h_zero_point b"
    return node("QLinearConv", names, output, **attributes)


def real_conv(last: str, *middle: onnx.NodeProto, output: str = "y", **attributes: object) -> list[onnx.NodeProto]:
    """Conv to ``sums``, then ``middle``, and QuantizeLinear of tensor ``last``."""
    return [
        dequantize("x"),
        dequantize("w", axis=0),
        node("DequantizeLinear", "b b_scale", "b_real", axis=0),
        node("Conv", "x_real w_real b_real", "sums", **attributes),
        *middle,
        quantize(last, output, "h"),
    ]


def with_bias_scale(values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return values | {"b_scale": values["x_scale"] * values["w_scale"]}


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"pads": [1, 1, 1, 1]},
        {"pads": [0, 2, 1, 0], "strides": [2, 3]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
        {"auto_pad": "VALID", "dilations": [3, 2]},
        {"kernel_shape": [3, 3], "dilations": [2, 1], "pads": [4, 4, 4, 4]},
    ],
)
def test_windows(random: np.random.Generator, dtype: str, attributes: dict[str, object]) -> None:
    proto = image_model([qlinear_conv(**attributes)], parameters(random, dtype), types=(dtype, dtype))
    assert differing(proto, images(random, dtype), CONFIG, batch=2) == 0


@pytest.mark.parametrize("shape", [(2, 3), (6, 1), (12, 1), (9, 2)])
def test_groups(random: np.random.Generator, shape: tuple[int, int]) -> None:
    """Groups larger than a tile, smaller than a tile, and divided by the edges of tiles."""
    outputs, per_group = 6 * shape[0], shape[1]
    values = parameters(random) | {
        "w": random_bytes(random, "uint8", (outputs, per_group, 3, 3)),
        "w_scale": np.float32(0.004),
        "w_zero_point": np.uint8(120),
        "b": random.integers(-5000, 5000, outputs).astype(np.int32),
    }
    proto = image_model([qlinear_conv(group=CHANNELS // per_group)], values)
    for size in (2, 4, 16):
        assert differing(proto, images(random), openmxu.Config.for_size(size)) == 0


def test_weights_that_do_not_fit_a_byte(random: np.random.Generator) -> None:
    """Channels of uint8 weights with zero points 0 and 255."""
    values = parameters(random)
    values["w"] = random_bytes(random, "uint8", values["w"].shape)
    values["w_zero_point"] = np.array([0, 255] * 5, np.uint8)
    values["h_scale"] = np.float32(3)
    assert differing(image_model([qlinear_conv()], values), images(random), CONFIG) == 0


def test_one_dimension(random: np.random.Generator) -> None:
    values = parameters(random) | {"w": random_bytes(random, "int8", (10, CHANNELS, 4))}
    nodes = [qlinear_conv("h", pads=[2, 1], strides=[2]), node("MaxPool", "h", "y", kernel_shape=[3], strides=[1])]
    proto = image_model(nodes, values, shape=(CHANNELS, 40))
    assert differing(proto, random_bytes(random, "uint8", (2, CHANNELS, 40)), CONFIG) == 0


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("limit", ["", "Relu", "Clip"])
def test_real_convolution(random: np.random.Generator, limit: str, optimize: bool) -> None:
    values = with_bias_scale(parameters(random)) | {"low": np.float32(0), "high": np.float32(6)}
    middle = [] if not limit else [node(limit, "sums low high" if limit == "Clip" else "sums", "t")]
    proto = image_model(real_conv("t" if limit else "sums", *middle, pads=[1, 1, 1, 1]), values)
    assert differing(proto, images(random), CONFIG, optimize=optimize) == 0


def test_bias_added_behind(random: np.random.Generator) -> None:
    values = with_bias_scale(parameters(random))
    values["c"] = (random.integers(-99, 99, (10, 1, 1)) * values["b_scale"].reshape(10, 1, 1)).astype(np.float32)
    proto = image_model(real_conv("t", node("Add", "c sums", "t")), values)
    assert differing(proto, images(random), CONFIG) == 0


@pytest.mark.parametrize(
    "pool",
    [
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        {"kernel_shape": [3, 2], "strides": [3, 2], "pads": [1, 1, 1, 0]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [2, 3], "strides": [2, 1], "ceil_mode": 1},
        {"kernel_shape": [2, 2], "strides": [3, 3]},
        {"kernel_shape": [7, 9]},
    ],
)
@pytest.mark.parametrize("accumulator_rows", [24, 60, 1024])
def test_maximum_behind_a_convolution(
    random: np.random.Generator, pool: dict[str, object], accumulator_rows: int
) -> None:
    """The maximum is taken in the same pass, band by band, or in a separate pass if windows overlap."""
    config = openmxu.Config.for_size(4, accumulator_rows=accumulator_rows)
    nodes = [qlinear_conv("h", pads=[1, 1, 1, 1]), node("MaxPool", "h", "y", **pool)]
    assert differing(image_model(nodes, parameters(random)), images(random), config) == 0


def test_maximum_between_convolution_and_quantization(random: np.random.Generator) -> None:
    middle = [
        node("MaxPool", "sums", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Relu", "p", "r"),
        node("MaxPool", "r", "t", kernel_shape=[2, 2]),
    ]
    proto = image_model(real_conv("t", *middle), with_bias_scale(parameters(random)))
    assert differing(proto, images(random), CONFIG) == 0


@pytest.mark.parametrize(
    ("form", "dtype"), [("integers", "uint8"), ("real", "int8"), ("padded", "int8"), ("input", "uint8")]
)
@pytest.mark.parametrize(
    "pool",
    [
        {"kernel_shape": [2, 2], "dilations": [2, 3]},
        {"kernel_shape": [3, 2], "dilations": [1, 4], "pads": [1, 1, 2, 1], "strides": [2, 1]},
        {"kernel_shape": [2, 3], "dilations": [3, 1], "strides": [2, 3], "ceil_mode": 1},
    ],
)
def test_maximum_of_positions_apart(
    random: np.random.Generator, form: str, dtype: str, pool: dict[str, object]
) -> None:
    values = with_bias_scale(parameters(random, dtype)) | {"around": np.array([0, 0, 1, 0, 0, 0, 0, 2])}
    convolution = qlinear_conv("h", pads=[1, 1, 1, 1])
    nodes = {
        "integers": [convolution, node("MaxPool", "h", "y", **pool)],
        "real": [convolution, dequantize("h"), node("MaxPool", "h_real", "m", **pool), quantize("m", "y", "y")],
        "padded": [convolution, node("Pad", "h around h_zero_point", "p"), node("MaxPool", "p", "y", **pool)],
        "input": [node("MaxPool", "x", "y", **pool)],
    }[form]
    proto = image_model(nodes, values, types=(dtype, dtype))
    assert differing(proto, images(random, dtype), CONFIG, batch=2) == 0


def test_maximum_of_steps_apart(random: np.random.Generator) -> None:
    proto = image_model([node("MaxPool", "x", "y", kernel_shape=[3], dilations=[2], pads=[1, 0])], {}, shape=(4, 50))
    assert differing(proto, random_bytes(random, "uint8", (BATCH, 4, 50)), CONFIG) == 0


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("shape", [(CHANNELS, HEIGHT, WIDTH), (3, 40, 40), (2, 300), (5, 1, 1)])
@pytest.mark.parametrize("result", ["x", "y"])
def test_maximum_of_planes(random: np.random.Generator, dtype: str, shape: tuple[int, ...], result: str) -> None:
    """One and two dimensions, windows of more than 255 columns, a single position; equal scales and different ones."""
    nodes = [dequantize("x"), node("GlobalMaxPool", "x_real", "m"), quantize("m", "y", result)]
    proto = image_model(nodes, parameters(random, dtype) | {"y_scale": np.float32(0.009)}, shape, (dtype, dtype))
    assert differing(proto, random_bytes(random, dtype, (BATCH, *shape)), CONFIG, batch=2) == 0


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("form", ["integers", "real"])
@pytest.mark.parametrize("axes", [[2, 3], [-1, 1], [1, 2]])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_maximum_over_all_dimensions_but_one(
    random: np.random.Generator, dtype: str, form: str, axes: list[int], keepdims: int
) -> None:
    values = parameters(random, dtype) | {"axes": np.array(axes), "y_scale": np.float32(0.009)}
    if form == "integers":
        nodes = [node("ReduceMax", "x axes", "y", keepdims=keepdims)]
    else:
        reduce = node("ReduceMax", "x_real axes", "m", keepdims=keepdims)
        nodes = [dequantize("x"), reduce, quantize("m", "y", "y")]
    proto = image_model(nodes, values, types=(dtype, dtype), dimensions=3 if keepdims else 1)
    assert differing(proto, images(random, dtype), CONFIG, batch=2) == 0


def test_sum_of_one_or_two_tensors(random: np.random.Generator) -> None:
    """The operator Sum: of one, of two, and of the sums of a layer and its bias."""
    values = with_bias_scale(parameters(random)) | {"offset": random.normal(size=(10, 1, 1)).astype(np.float32)}
    convolution = [dequantize("x"), dequantize("w", axis=0), node("Conv", "x_real w_real", "c")]
    nodes = [
        *(*convolution, node("Sum", "c offset", "s"), quantize("s", "h", "h"), dequantize("h")),
        *(node("MaxPool", "h_real", "p", kernel_shape=[1, 1]), node("Sum", "h_real p", "t"), node("Sum", "t", "u")),
        quantize("u", "y", "y"),
    ]
    assert differing(image_model(nodes, values), images(random), CONFIG) <= 1


@pytest.mark.parametrize("middle", ["", "Relu", "MaxPool", "GlobalMaxPool"])
@pytest.mark.parametrize("accumulator_rows", [24, 1024])
def test_maximum_of_planes_behind_a_convolution(
    random: np.random.Generator, middle: str, accumulator_rows: int
) -> None:
    """It is done in the same pass if the sums of a plane fit into the accumulators, otherwise in a separate pass."""
    config = openmxu.Config.for_size(4, accumulator_rows=accumulator_rows)
    attributes = {"kernel_shape": [2, 3], "strides": [2, 2]} if middle == "MaxPool" else {}
    between = [node(middle, "sums", "t", **attributes)] if middle else []
    nodes = real_conv("m", *between, node("GlobalMaxPool", "t" if middle else "sums", "m"), pads=[1, 1, 1, 1])
    proto = image_model(nodes, with_bias_scale(parameters(random)))
    assert differing(proto, images(random), config) == 0
    is_one_pass = accumulator_rows == 1024 and middle in ("", "Relu")
    assert (len(fuse(import_network(proto), config).operations) == 1) == is_one_pass


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_operations_fused_to_one_pass(random: np.random.Generator, dtype: str) -> None:
    """A convolution, its limits, the maximum, and a table are one operation."""
    values = with_bias_scale(parameters(random, dtype)) | {"low": np.asarray(3, dtype), "high": np.asarray(99, dtype)}
    nodes = [
        *real_conv("t", node("Relu", "sums", "t"), output="h"),
        node("Clip", "h low high", "c"),
        node("MaxPool", "c", "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("DequantizeLinear", "p h_scale h_zero_point", "p_real"),
        node("Sigmoid", "p_real", "s"),
        node("QuantizeLinear", "s s_scale s_zero_point", "y"),
    ]
    values |= {"s_scale": np.float32(1 / 256), "s_zero_point": np.asarray(0, dtype)}
    proto = image_model(nodes, values, types=(dtype, dtype))
    assert differing(proto, images(random, dtype), CONFIG) == 0
    assert len(fuse(import_network(proto), CONFIG).operations) == 1


def test_results_with_several_uses_are_not_fused(random: np.random.Generator) -> None:
    """An operation is not fused if its result is also used by another one."""
    nodes = [
        qlinear_conv("h", pads=[1, 1, 1, 1]),
        node("MaxPool", "h", "m", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        node("QLinearAdd", "h h_scale h_zero_point m h_scale h_zero_point y_scale y_zero_point", "y"),
    ]
    nodes[2].domain = "com.microsoft"
    assert differing(image_model(nodes, parameters(random)), images(random), CONFIG) <= 1


def test_flattened_image_times_matrix(random: np.random.Generator) -> None:
    values = with_bias_scale(parameters(random)) | {"v": random_bytes(random, "int8", (10 * 4 * 5, 13))}
    nodes = [
        qlinear_conv("h"),
        node("MaxPool", "h", "p", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
        node("Flatten", "p", "f"),
        node("QLinearMatMul", "f h_scale h_zero_point v v_scale v_zero_point y_scale y_zero_point", "y"),
    ]
    proto = image_model(nodes, values | {"y_scale": np.float32(9)}, dimensions=1)
    assert differing(proto, images(random), CONFIG) == 0


def test_flattened_rows_times_matrix(random: np.random.Generator) -> None:
    """The rows of a matrix are joined before the next product."""
    values = parameters(random) | {"w": random_bytes(random, "int8", (WIDTH, 8)), "w_scale": np.float32(0.01)}
    values |= {"w_zero_point": np.int8(3), "v": random_bytes(random, "int8", (HEIGHT * 8, 5)), "y_scale": np.float32(5)}
    nodes = [
        node("QLinearMatMul", "x x_scale x_zero_point w w_scale w_zero_point h_scale h_zero_point", "h"),
        node("Flatten", "h", "f"),
        node("QLinearMatMul", "f h_scale h_zero_point v v_scale v_zero_point y_scale y_zero_point", "y"),
    ]
    proto = image_model(nodes, values, shape=(HEIGHT, WIDTH), dimensions=1)
    assert differing(proto, random_bytes(random, "uint8", (BATCH, HEIGHT, WIDTH)), CONFIG) == 0


def test_global_average_of_a_convolution_times_matrix(random: np.random.Generator) -> None:
    values = with_bias_scale(parameters(random)) | {
        "v": random_bytes(random, "int8", (10, 5)),
        "one": np.array([0, -1]),
    }
    nodes = [
        qlinear_conv("h"),
        dequantize("h"),
        node("GlobalAveragePool", "h_real", "g"),
        quantize("g", "q", "h"),
        node("Reshape", "q one", "f"),
        node("QLinearMatMul", "f h_scale h_zero_point v v_scale v_zero_point y_scale y_zero_point", "y"),
    ]
    assert differing(image_model(nodes, values, dimensions=1), images(random), CONFIG) == 0


def test_sums_and_real_numbers_as_outputs(random: np.random.Generator) -> None:
    values = with_bias_scale(parameters(random)) | {"factor": random.uniform(0.1, 1, (10, 1, 1)).astype(np.float32)}
    conv = node("ConvInteger", "x w x_zero_point", "sums", pads=[1, 0, 0, 1])
    cast = [conv, node("Cast", "sums", "r", to=TensorProto.FLOAT), node("Mul", "r factor", "y")]
    conv_out = node("ConvInteger", "x w x_zero_point", "y", strides=[2, 2])
    dequantized = [qlinear_conv("h"), node("DequantizeLinear", "h h_scale h_zero_point", "y")]
    for nodes, dtype in (([conv_out], "int32"), (cast, "float32"), (dequantized, "float32")):
        assert differing(image_model(nodes, values, types=("uint8", dtype)), images(random), CONFIG) == 0


def test_real_image(random: np.random.Generator) -> None:
    """The host quantizes the image, and pads it with the zero point."""
    values = parameters(random) | {"w": random_bytes(random, "int8", (10, 1, 3, 3))}
    conv = qlinear_conv(pads=[1, 1, 1, 1])
    conv.input[0] = "q"
    proto = image_model([quantize("x", "q", "x"), conv], values, shape=(1, HEIGHT, WIDTH), types=("float32", "uint8"))
    image = random.normal(0, 1, (BATCH, 1, HEIGHT, WIDTH)).astype(np.float32)
    assert differing(proto, image, openmxu.Config.for_size(16)) == 0


@pytest.mark.parametrize("size", [4, 8, 16, 32])
@pytest.mark.parametrize(
    ("channels", "kernel", "attributes"),
    [
        (1, (3, 3), {"pads": [1, 1, 1, 1]}),
        (1, (5, 5), {"pads": [2, 2, 2, 2], "strides": [2, 1]}),
        (2, (3, 2), {"pads": [2, 0, 1, 1], "dilations": [2, 3]}),
        (3, (7, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        (3, (4, 7), {"pads": [0, 6, 0, 0]}),
    ],
)
def test_few_channels(
    random: np.random.Generator, size: int, channels: int, kernel: tuple[int, int], attributes: dict[str, object]
) -> None:
    """Neighbouring pixels share the lanes of a row, so that there are fewer kernel positions."""
    values = parameters(random) | {"w": random_bytes(random, "int8", (10, channels, *kernel))}
    proto = image_model([qlinear_conv(**attributes)], values, shape=(channels, HEIGHT, WIDTH))
    assert differing(proto, images(random, channels=channels), openmxu.Config.for_size(size)) == 0


def test_packed_image_in_a_file(random: np.random.Generator, tmp_path) -> None:
    values = parameters(random) | {"w": random_bytes(random, "int8", (10, 1, 3, 3))}
    proto = image_model([qlinear_conv(pads=[1, 1, 1, 1])], values, shape=(1, HEIGHT, WIDTH))
    config = openmxu.Config.for_size(8)
    program = openmxu.compile(proto, config)
    program.save(tmp_path / "model.mxu")
    loaded = openmxu.Program.load(tmp_path / "model.mxu")
    assert loaded.inputs == program.inputs
    assert loaded.segments[0].inputs[0].packing is not None
    with openmxu.open_device("interpreter", config) as device:
        values = images(random, channels=1)
        assert (loaded.run(device, values)["y"] == program.run(device, values)["y"]).all()


def test_two_inputs_and_two_outputs(random: np.random.Generator) -> None:
    values = parameters(random)
    add = node("QLinearAdd", "x x_scale x_zero_point z h_scale h_zero_point y_scale y_zero_point", "y")
    multiply = node("QLinearMul", "x x_scale x_zero_point z h_scale h_zero_point y_scale y_zero_point", "t")
    add.domain = multiply.domain = "com.microsoft"
    shape = (CHANNELS, HEIGHT, WIDTH)
    inputs = {"x": images(random), "z": images(random)}
    results = {}
    for name, nodes in (("y", [add]), ("t", [multiply]), ("both", [add, multiply])):
        proto = image_model(nodes, values, more=[("z", "uint8", shape)])
        if name != "y":
            proto.graph.output[0].name = "t"
        if name == "both":
            proto.graph.output.add().CopyFrom(proto.graph.output[0])
            proto.graph.output[1].name = "y"
        else:
            assert differing(proto, inputs, CONFIG) <= 1
        with openmxu.open_device("interpreter", CONFIG) as device:
            results |= {(name, key): value for key, value in openmxu.compile(proto, CONFIG).run(device, inputs).items()}
    assert (results["both", "y"] == results["y", "y"]).all()
    assert (results["both", "t"] == results["t", "t"]).all()


@pytest.mark.parametrize("shape", [(), (CHANNELS, 1, 1), (1, 1, WIDTH), (1, CHANNELS, HEIGHT, WIDTH)])
@pytest.mark.parametrize("first", [True, False])
def test_constants_are_broadcast(random: np.random.Generator, shape: tuple[int, ...], first: bool) -> None:
    values = parameters(random) | {"c": random_bytes(random, "uint8", shape)}
    names = ["x x_scale x_zero_point", "c h_scale h_zero_point"][:: 1 if first else -1]
    multiply = node("QLinearMul", f"{' '.join(names)} y_scale y_zero_point", "y")
    multiply.domain = "com.microsoft"
    assert differing(image_model([multiply], values), images(random), CONFIG, batch=2) <= 1


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Relu", "x_real", "r"), node("Mul", "r half", "f")],
        [node("Sigmoid", "x_real", "s"), node("Mul", "x_real s", "f")],
        [node("Tanh", "x_real", "t"), node("Add", "t half", "a"), node("LeakyRelu", "a", "f", alpha=0.2)],
        [node("Clip", "x_real low", "f")],
        [node("Identity", "x_real", "f")],
    ],
)
def test_functions(random: np.random.Generator, nodes: list[onnx.NodeProto]) -> None:
    """Any function of one tensor between DequantizeLinear and QuantizeLinear becomes a table."""
    values = parameters(random) | {"half": np.float32([[0.5]]), "low": np.float32(0.4), "y_scale": np.float32(0.011)}
    proto = image_model([dequantize("x"), *nodes, quantize("f", "y", "y")], values)
    assert len(import_network(proto).operations) == 1
    assert differing(proto, images(random), CONFIG) == 0


def test_other_scale_and_type(random: np.random.Generator) -> None:
    values = parameters(random) | {"y_zero_point": np.int8(-3), "y_scale": np.float32(0.017)}
    proto = image_model([dequantize("x"), quantize("x_real", "y", "y")], values, types=("uint8", "int8"))
    assert differing(proto, images(random), CONFIG) == 0


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_limits_on_the_input(random: np.random.Generator, dtype: str) -> None:
    nodes = [node("Clip", "x low", "r"), node("MaxPool", "r", "y", kernel_shape=[3, 3], strides=[1, 2])]
    values = {"low": np.asarray(60, dtype)}
    assert differing(image_model(nodes, values, types=(dtype, dtype)), images(random, dtype), CONFIG) == 0
    proto = image_model([node("Relu", "x", "y")], {}, types=("int8", "int8"))
    assert differing(proto, images(random, "int8"), CONFIG) == 0


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [3, 2], "pads": [2, 1, 0, 1], "strides": [1, 2]},
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
        {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1},
        {"kernel_shape": [4, 1], "pads": [3, 0, 3, 0]},
    ],
)
def test_averages(random: np.random.Generator, attributes: dict[str, object]) -> None:
    nodes = [dequantize("x"), node("AveragePool", "x_real", "a", **attributes), quantize("a", "y", "x")]
    assert differing(image_model(nodes, parameters(random)), images(random), CONFIG, batch=2) <= 1


def test_batch_where_the_model_leaves_it_open(random: np.random.Generator) -> None:
    proto = image_model([qlinear_conv()], parameters(random))
    assert openmxu.compile(proto, CONFIG).batch == 1
    assert openmxu.compile(proto, CONFIG, batch=5).batch == 5
