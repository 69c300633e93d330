"""The module hearth.tensorflowonspark.reservation itself, under TensorFlowOnSpark's name."""

import sys

import hearth.tensorflowonspark.reservation as _module

sys.modules[__name__] = _module
