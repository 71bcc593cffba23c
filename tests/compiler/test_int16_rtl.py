"""int16 tensors on the simulated RTL: results equal those of the definition."""

from __future__ import annotations

import numpy as np

import openmxu
from openmxu.compiler import import_model
from tests.compiler.models.int16_models import BATCH, FORMS, convolutions, inputs_of, model_of


def test_results_on_the_rtl() -> None:
    models = [*(model_of(*form) for form in FORMS.values()), convolutions()]
    with openmxu.open_device("verilator", openmxu.Config()) as device:
        for model in models:
            inputs = inputs_of(model)
            program = openmxu.compile(model, openmxu.Config(), batch=BATCH, strict=True, effort=0)
            np.testing.assert_array_equal(program.run(device, inputs)["y"], import_model(model).evaluate(inputs)["y"])
