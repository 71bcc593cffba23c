"""Models of Keras, on PyTorch."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scripts.exporters.exported import Exported, values

__all__ = ["export"]


def export() -> Iterator[Exported]:
    """A dense network and two convolutional ones, channels last."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras
    from keras import layers

    models = {
        "dense": [keras.Input((12,)), layers.Dense(16, activation="relu"), layers.Dense(3, activation="softmax")],
        "convolutional": [
            keras.Input((16, 16, 3)),
            *(layers.Conv2D(8, 3, padding="same", activation="relu"), layers.MaxPooling2D()),
            *(layers.BatchNormalization(), layers.Conv2D(12, 3, strides=2, activation="swish")),
            *(layers.GlobalAveragePooling2D(), layers.Dense(4)),
        ],
        "depthwise": [
            keras.Input((16, 16, 3)),
            *(layers.DepthwiseConv2D(3, padding="same"), layers.Conv2D(8, 1, activation="relu6")),
            *(layers.AveragePooling2D(2), layers.Flatten(), layers.Dense(4, activation="sigmoid")),
        ],
    }
    for name, parts in models.items():
        model = keras.Sequential(parts)
        x = values(*model.input_shape[1:])
        model.predict(x[:2], verbose=0)
        with tempfile.TemporaryDirectory(prefix="openmxu-") as folder:
            path = Path(folder) / "model.onnx"
            model.export(path, format="onnx", verbose=False)
            yield Exported(f"Keras {name}", path.read_bytes(), x)
