"""Quantize, compile and run models straight from exporters, and compare them with ONNX Runtime.

make exporters                      # in an environment of its own: the exporters take some gigabytes
python -m scripts.exporters         # where they are installed: pip install 'openmxu[demo,exporters]'
"""

from __future__ import annotations

import sys
import warnings

import onnx

import openmxu
from openmxu.comparison import Difference
from openmxu.segments.graph_runner import GraphRunner
from scripts.exporters import keras_models, pytorch, scikit_learn
from scripts.exporters.exported import Exported

__all__ = ["check", "main"]

_STEPS = 0.03
"""What recurrent cells, which have numbers of their own, may differ by."""


def check(exported: Exported, device: openmxu.Device) -> str:
    """Whether a model gives ONNX Runtime's results, in one line.

    Raises
    ------
    openmxu.CompileError, openmxu.InputError, openmxu.DeviceError
        It gives none.
    ValueError
        It gives others.
    """
    model = onnx.load_from_string(exported.data)
    constants = {item.name for item in model.graph.initializer}
    (name,) = (item.name for item in model.graph.input if item.name not in constants)
    quantized = openmxu.quantize(model, {name: exported.values})
    program = openmxu.compile(quantized, device.config)
    results = list(program.run(device, {name: exported.values}).values())
    wanted = GraphRunner(quantized.SerializeToString(), optimize=True).run({name: exported.values})
    has_cells = any(node.op_type in ("GRU", "LSTM") for node in quantized.graph.node)
    largest = Difference.of(results, wanted).largest
    if largest > (_STEPS if has_cells else 0):
        raise ValueError(f"the results are {largest} apart")
    result = (
        "equal to ONNX Runtime" if not largest else f"{largest:.4f} from ONNX Runtime: a cell has numbers of its own"
    )
    return f"{program.device_share:8.2%} on the device, {len(program.segments)} segments, {result}"


def main() -> int:
    """The exit status: 0 if every model gives ONNX Runtime's results."""
    warnings.simplefilter("ignore")
    count = right = 0
    with openmxu.open_device("interpreter", openmxu.Config.for_size(8, profile="full")) as device:
        for exporter in (scikit_learn, pytorch, keras_models):
            for exported in exporter.export():
                count += 1
                try:
                    line = check(exported, device)
                    right += 1
                except (openmxu.CompileError, openmxu.InputError, openmxu.DeviceError, ValueError) as error:
                    line = f"   fails: {error}"
                print(f"{exported.name:44}{line}", flush=True)
    print(f"{right} of {count} models give ONNX Runtime's results")
    return 0 if right == count else 1


if __name__ == "__main__":
    sys.exit(main())
