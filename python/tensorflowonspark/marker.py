"""The module hearth.tensorflowonspark.marker itself, under TensorFlowOnSpark's name."""

import sys

import hearth.tensorflowonspark.marker as _module

sys.modules[__name__] = _module
