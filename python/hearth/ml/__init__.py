"""Deep learning as stages of Spark ML Pipelines: fit, transform, save, load, CrossValidator.

    from hearth.ml import TorchEstimator

    estimator = TorchEstimator(make_model, torch.nn.functional.cross_entropy, torch.optim.Adam)
    model = estimator.setInputCols(["image"]).setEpochs(20).setWorkers(2).fit(frame)
    model.transform(frame)

Also functions over columns (map_blocks, reduce_blocks), and inference (predict).

Importing this package loads neither pyspark nor PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hearth import on_demand

if TYPE_CHECKING:
    from hearth.ml.blocks import map_blocks as map_blocks
    from hearth.ml.blocks import reduce_blocks as reduce_blocks
    from hearth.ml.caffe_stages import CaffeEstimator as CaffeEstimator
    from hearth.ml.caffe_stages import CaffeModel as CaffeModel
    from hearth.ml.keras_stages import KerasEstimator as KerasEstimator
    from hearth.ml.keras_stages import KerasModel as KerasModel
    from hearth.ml.prediction import predict as predict
    from hearth.ml.prediction import release_devices as release_devices
    from hearth.ml.saved_stages import trusted as trusted
    from hearth.ml.summary import TrainingSummary as TrainingSummary
    from hearth.ml.torch_stages import TorchEstimator as TorchEstimator
    from hearth.ml.torch_stages import TorchModel as TorchModel

_HOMES = {
    ".caffe_stages": "CaffeEstimator CaffeModel",
    ".keras_stages": "KerasEstimator KerasModel",
    ".torch_stages": "TorchEstimator TorchModel",
    ".summary": "TrainingSummary",
    ".blocks": "map_blocks reduce_blocks",
    ".prediction": "predict release_devices",
    ".saved_stages": "trusted",
}
if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_demand(__name__, _HOMES)
