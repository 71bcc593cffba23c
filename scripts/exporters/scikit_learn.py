"""Models of scikit-learn, by skl2onnx."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from scripts.exporters.exported import Exported, values

__all__ = ["export"]

_FEATURES = 12


def export() -> Iterator[Exported]:
    """Perceptrons for classes and numbers, a linear model, and pipelines with scaling and principal components."""
    from skl2onnx import to_onnx
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x = values(_FEATURES)
    y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype(int) + (x[:, 3] > 1)
    settings = {"max_iter": 30, "random_state": 0}
    models = {
        "MLPClassifier": MLPClassifier(hidden_layer_sizes=(16, 8), **settings),
        "MLPRegressor": MLPRegressor(hidden_layer_sizes=(16,), **settings),
        "LogisticRegression": LogisticRegression(),
        "StandardScaler, MLPClassifier": make_pipeline(StandardScaler(), MLPClassifier(activation="tanh", **settings)),
        "PCA, MLPRegressor": make_pipeline(PCA(5), MLPRegressor(hidden_layer_sizes=(8,), **settings)),
    }
    for name, model in models.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that few iterations do not converge
            model.fit(x, y)
        options = {"zipmap": False} if hasattr(model, "predict_proba") else None
        yield Exported(f"scikit-learn {name}", to_onnx(model, x[:1], options=options).SerializeToString(), x)
