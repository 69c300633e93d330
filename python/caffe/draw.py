"""The module hearth.caffe.draw itself, under pycaffe's name."""

import sys

from hearth.caffe import draw

sys.modules[__name__] = draw
