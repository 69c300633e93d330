"""The module hearth.tensorflowonspark.TFCluster itself, under TensorFlowOnSpark's name."""

import sys

import hearth.tensorflowonspark.TFCluster as _module

sys.modules[__name__] = _module
