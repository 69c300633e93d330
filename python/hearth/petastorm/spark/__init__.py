"""petastorm.spark's API: converts a DataFrame, written once, for PyTorch and TensorFlow."""

from __future__ import annotations

from hearth.petastorm.converter import SparkDatasetConverter as SparkDatasetConverter
from hearth.petastorm.converter import make_spark_converter as make_spark_converter
