"""Open dimensions of a model, fixed by the user."""

from __future__ import annotations

import numpy as np
import pytest

import openmxu
from openmxu import ModelError
from openmxu.compiler.onnx.input_shapes import Shapes, with_shapes
from openmxu.exact_session import exact_session
from tests.compiler.models.open_models import open_model

CONFIG = openmxu.Config.for_size(4)


@pytest.mark.parametrize(
    ("names", "shapes"),
    [
        (("height", "width"), {"height": 7, "width": 9}),
        (("height", "width"), {"x": (0, 3, 7, 9)}),
        (("height", "width"), {"x": (0, 0, 7, 0), "width": 9}),
        (("", ""), {"x": (0, 3, 7, 9)}),
        (("", "width"), {"width": 9, "x": [0, 3, 7, 9]}),
    ],
)
def test_shapes(names: tuple[str, str], shapes: Shapes) -> None:
    model, inputs = open_model(*names)
    before = model.SerializeToString()
    program = openmxu.compile(model, CONFIG, shapes=shapes)
    assert model.SerializeToString() == before
    with openmxu.open_device("interpreter", CONFIG) as device:
        (results,) = program.run(device, inputs).values()
    (expected,) = exact_session(before).run(None, {"x": inputs})
    assert np.array_equal(results, expected)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"depth": 3}, "no open dimension 'depth'; there are: batch, height, width"),
        ({"y": (1, 2)}, "no input 'y'; there are: x"),
        ({"x": (0, 3, 7)}, "input 'x' has 4 dimensions, not 3"),
        ({"x": (0, 4, 7, 9)}, "dimension 1 of input 'x' is 3 already, not 4"),
        ({"height": -1}, "dimension 'height' must be positive, not -1"),
        ({"height": 7, "x": (0, 3, 8, 9)}, "dimension 'height' cannot be both 7 and 8"),
    ],
)
def test_shapes_that_do_not_fit(shapes: Shapes, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        openmxu.compile(open_model()[0], CONFIG, shapes=shapes)


@pytest.mark.parametrize(
    ("names", "remedy"), [(("height", "9"), "--shape height=N"), (("", ""), "--shape x=0,3,0,0 without zeros")]
)
def test_the_error_says_what_to_do(names: tuple[str, str], remedy: str) -> None:
    with pytest.raises(ModelError, match=remedy):
        openmxu.compile(open_model(*names)[0], CONFIG)


def test_a_dimension_is_the_same_everywhere() -> None:
    fixed = with_shapes(open_model("size", "size")[0], {"size": 9})
    dims = [dim.dim_value for dim in fixed.graph.input[0].type.tensor_type.shape.dim]
    assert dims[2:] == [9, 9]
