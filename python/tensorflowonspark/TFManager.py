"""The module hearth.tensorflowonspark.TFManager itself, under TensorFlowOnSpark's name."""

import sys

import hearth.tensorflowonspark.TFManager as _module

sys.modules[__name__] = _module
