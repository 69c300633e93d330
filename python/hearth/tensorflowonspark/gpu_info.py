"""The module hearth.cluster.node.gpu_info under TensorFlowOnSpark's name."""

import sys

import hearth.cluster.node.gpu_info as _module

sys.modules[__name__] = _module
