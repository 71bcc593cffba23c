"""The digits network behind the AXI shell gives the same outputs as ONNX Runtime."""

import os

import cocotb
import numpy as np
from cocotb.task import bridge

import openmxu
from openmxu.driver import MappedDevice
from openmxu.exact_session import exact_session
from openmxu.models import DIGITS_MODEL, digits_test_split
from tb.axi import IMAGES_VARIABLE
from tb.axi.system import AxiSystem
from tb.bench import CONFIG

FEW_IMAGES = 20


@cocotb.test()
async def digits(dut):
    system = await AxiSystem.start(dut, 0.1)
    images = digits_test_split()[0][: int(os.environ.get(IMAGES_VARIABLE, FEW_IMAGES))]
    session = exact_session(DIGITS_MODEL)
    (expected,) = session.run(None, {session.get_inputs()[0].name: images})
    program = openmxu.compile(DIGITS_MODEL, CONFIG, batch=len(images), effort=0)  # the shell is tested, not the search

    @bridge
    def run():
        with MappedDevice(system) as device:
            outputs = program.run(device, images)
        (logits,) = outputs.values()
        cocotb.log.info("%d outputs, %d differ", logits.size, np.count_nonzero(logits != expected))
        assert np.array_equal(logits, expected)

    await run()
