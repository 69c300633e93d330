"""CaffeOnSpark's Python API and command line, on Hearth.

cos = CaffeOnSpark(spark)
config = Config(spark, {"conf": "lenet_memory_solver.prototxt", "model": "file:/tmp/lenet"})
cos.train(DataSource(spark).getSource(config, True))
features = cos.features(DataSource(spark).getSource(config, False))
"""

from hearth.caffeonspark.caffe_on_spark import CaffeOnSpark
from hearth.caffeonspark.config import Config
from hearth.caffeonspark.data_source import DataSource, Source
from hearth.caffeonspark.flags import FlagError

__all__ = ["CaffeOnSpark", "Config", "DataSource", "FlagError", "Source"]
