"""The module hearth.cluster.driver.reservation under TensorFlowOnSpark's name."""

import sys

import hearth.cluster.driver.reservation as _module

sys.modules[__name__] = _module
