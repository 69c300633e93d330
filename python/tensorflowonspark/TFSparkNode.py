"""The module hearth.tensorflowonspark.TFSparkNode itself, under TensorFlowOnSpark's name."""

import sys

import hearth.tensorflowonspark.TFSparkNode as _module

sys.modules[__name__] = _module
