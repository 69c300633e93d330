"""CaffeOnSpark's Python API and command line, on Hearth.

cos = CaffeOnSpark(spark)
config = Config(spark, {"conf": "lenet_memory_solver.prototxt", "model": "file:/tmp/lenet"})
cos.train(DataSource(spark).getSource(config, True))
features = cos.features(DataSource(spark).getSource(config, False))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hearth import on_demand

if TYPE_CHECKING:
    from hearth.caffeonspark.caffe_on_spark import CaffeOnSpark as CaffeOnSpark
    from hearth.caffeonspark.config import Config as Config
    from hearth.caffeonspark.data_source import DataSource as DataSource
    from hearth.caffeonspark.flags import FlagError as FlagError
    from hearth.caffeonspark.source import Source as Source

_HOMES = {
    ".caffe_on_spark": "CaffeOnSpark",
    ".config": "Config",
    ".data_source": "DataSource",
    ".flags": "FlagError",
    ".source": "Source",
}
# Imported on demand, so that the program handles Ctrl-C before it loads anything large.
if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_demand(__name__, _HOMES)
