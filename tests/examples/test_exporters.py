"""Models straight from scikit-learn's exporter; make exporters tries those of PyTorch and Keras as well."""

from __future__ import annotations

import pytest

import openmxu
from scripts.exporters import scikit_learn
from scripts.exporters.__main__ import check


def test_scikit_learn() -> None:
    with openmxu.open_device("interpreter", openmxu.Config.for_size(8)) as device:
        lines = [check(exported, device) for exported in scikit_learn.export()]
    assert len(lines) == 5
    assert all(line.startswith(" 100.00% on the device") and "equal to ONNX Runtime" in line for line in lines)


def test_other_results_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    exported = next(iter(scikit_learn.export()))
    with openmxu.open_device("interpreter", openmxu.Config.for_size(8)) as device:
        load = openmxu.Device.run
        monkeypatch.setattr(
            openmxu.Device, "run", lambda *given: {name: array + 1 for name, array in load(*given).items()}
        )
        with pytest.raises(ValueError, match=r"the results are 1\.\d* apart"):
            check(exported, device)
