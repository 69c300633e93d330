"""petastorm.spark's API: a DataFrame, written once, as minibatches of PyTorch and TensorFlow."""

from __future__ import annotations

from hearth.petastorm.converter import SparkDatasetConverter as SparkDatasetConverter
from hearth.petastorm.converter import make_spark_converter as make_spark_converter
