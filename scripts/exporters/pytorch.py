"""Modules of PyTorch, by its two exporters, with an open batch."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts.exporters.exported import Exported, values

__all__ = ["export"]


def export() -> Iterator[Exported]:
    """A convolutional network, recurrent ones, an encoder of a transformer, and a network that scales up again."""
    import torch

    torch.manual_seed(0)
    for name, (module, shape) in _modules(torch.nn).items():
        module.eval()
        x = values(*shape)
        sample = torch.from_numpy(x[:2])
        yield Exported(f"PyTorch {name}, TorchScript", _by_tracing(torch, module, sample), x)
        yield Exported(f"PyTorch {name}, torch.export", _by_graph(torch, module, sample), x)


def _by_tracing(torch: Any, module: Any, sample: Any) -> bytes:
    buffer = io.BytesIO()
    axes = {"x": {0: "batch"}, "y": {0: "batch"}}
    torch.onnx.export(module, (sample,), buffer, input_names=["x"], output_names=["y"], dynamic_axes=axes, dynamo=False)
    return buffer.getvalue()


def _by_graph(torch: Any, module: Any, sample: Any) -> bytes:
    with tempfile.TemporaryDirectory(prefix="openmxu-") as folder:
        path = Path(folder) / "model.onnx"
        shapes = ({0: torch.export.Dim("batch")},)
        torch.onnx.export(
            module, (sample,), path, dynamo=True, dynamic_shapes=shapes, external_data=False, verbose=False
        )
        return path.read_bytes()


def _modules(nn: Any) -> dict[str, tuple[Any, tuple[int, ...]]]:
    class Recurrent(nn.Module):
        def __init__(self, cell: Any, **options: Any) -> None:
            super().__init__()
            self.cell = cell(6, 10, batch_first=True, **options)
            self.dense = nn.Linear(20 if options else 10, 3)

        def forward(self, x: Any) -> Any:
            return self.dense(self.cell(x)[0][:, -1])

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Linear(6, 16)
            self.layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
            self.dense = nn.Linear(16, 3)

        def forward(self, x: Any) -> Any:
            return self.dense(self.layer(self.embedding(x)).mean(1))

    convolutional = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, stride=2), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)),
    )
    scaling = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.GroupNorm(2, 8), nn.ReLU()),
        *(nn.ConvTranspose2d(8, 4, 2, stride=2), nn.PReLU(4), nn.Conv2d(4, 2, 1), nn.Sigmoid()),
    )
    return {
        "convolutional": (convolutional, (3, 16, 16)),
        "LSTM": (Recurrent(nn.LSTM), (7, 6)),
        "GRU": (Recurrent(nn.GRU), (7, 6)),
        "LSTM of two directions": (Recurrent(nn.LSTM, bidirectional=True), (7, 6)),
        "transformer": (Encoder(), (7, 6)),
        "scaling up": (scaling, (3, 16, 16)),
    }
