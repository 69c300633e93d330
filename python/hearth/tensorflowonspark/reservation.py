"""The module hearth.cluster.reservation under TensorFlowOnSpark's name."""

import sys

import hearth.cluster.reservation as _module

sys.modules[__name__] = _module
