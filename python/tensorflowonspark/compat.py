"""The module hearth.tensorflowonspark.compat itself, under TensorFlowOnSpark's name."""

import sys

import hearth.tensorflowonspark.compat as _module

sys.modules[__name__] = _module
