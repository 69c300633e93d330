"""The module hearth.tensorflowonspark.TFParallel itself, under TensorFlowOnSpark's name."""

import sys

import hearth.tensorflowonspark.TFParallel as _module

sys.modules[__name__] = _module
