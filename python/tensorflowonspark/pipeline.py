"""The module hearth.tensorflowonspark.pipeline itself, under TensorFlowOnSpark's name."""

import sys

import hearth.tensorflowonspark.pipeline as _module

sys.modules[__name__] = _module
