"""The module hearth.caffe.detector itself, under pycaffe's name."""

import sys

from hearth.caffe import detector

sys.modules[__name__] = detector
