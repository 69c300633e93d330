"""The module hearth.tensorflowonspark.gpu_info itself, under TensorFlowOnSpark's name."""

import sys

import hearth.tensorflowonspark.gpu_info as _module

sys.modules[__name__] = _module
