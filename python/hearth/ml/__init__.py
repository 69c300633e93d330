"""Deep learning as stages of Spark ML Pipelines: fit, transform, save, load, CrossValidator.

    from hearth.ml import TorchEstimator

    estimator = TorchEstimator(make_model, torch.nn.functional.cross_entropy, torch.optim.Adam)
    model = estimator.setInputCols(["image"]).setEpochs(20).setWorkers(2).fit(frame)
    model.transform(frame)

and functions over columns: map_blocks and reduce_blocks.

Importing this package loads neither pyspark nor PyTorch.
"""

from __future__ import annotations

from hearth import on_demand

_HOMES = {
    "CaffeEstimator": ".caffe_stages",
    "CaffeModel": ".caffe_stages",
    "TorchEstimator": ".torch_stages",
    "TorchModel": ".torch_stages",
    "map_blocks": ".blocks",
    "reduce_blocks": ".blocks",
}
__all__ = [*_HOMES]
__getattr__ = on_demand(__name__, _HOMES)
