"""The module hearth.tensorflowonspark.util itself, under TensorFlowOnSpark's name."""

import sys

import hearth.tensorflowonspark.util as _module

sys.modules[__name__] = _module
