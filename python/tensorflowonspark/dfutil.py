"""The module hearth.tensorflowonspark.dfutil itself, under TensorFlowOnSpark's name."""

import sys

import hearth.tensorflowonspark.dfutil as _module

sys.modules[__name__] = _module
