"""Petastorm's DataFrame converter: `from hearth.petastorm.spark import make_spark_converter`.

docs/horovod.md lists the differences from Petastorm.
"""

from __future__ import annotations

from hearth.petastorm.transform import TransformSpec as TransformSpec
