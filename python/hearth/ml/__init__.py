"""Deep learning as stages of Spark ML Pipelines: fit, transform, save, load, CrossValidator.

    from hearth.ml import TorchEstimator

    estimator = TorchEstimator(make_model, torch.nn.functional.cross_entropy, torch.optim.Adam)
    model = estimator.setInputCols(["image"]).setEpochs(20).setWorkers(2).fit(frame)
    model.transform(frame)

Importing this package loads neither pyspark nor PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "CaffeEstimator": "hearth.ml.caffe_stages",
    "CaffeModel": "hearth.ml.caffe_stages",
    "TorchEstimator": "hearth.ml.torch_stages",
    "TorchModel": "hearth.ml.torch_stages",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'hearth.ml' has no attribute {name!r}")
