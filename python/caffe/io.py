"""The module hearth.caffe.io itself, under pycaffe's name."""

import sys

from hearth.caffe import io

sys.modules[__name__] = io
