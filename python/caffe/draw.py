"""Another name of hearth.caffe.draw, for the very same module."""

import sys

from hearth.caffe import draw

sys.modules[__name__] = draw
