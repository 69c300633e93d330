"""The module hearth.tensorflowonspark.TFNode itself, under TensorFlowOnSpark's name."""

import sys

import hearth.tensorflowonspark.TFNode as _module

sys.modules[__name__] = _module
