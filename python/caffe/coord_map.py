"""The module hearth.caffe.coord_map itself, under pycaffe's name."""

import sys

from hearth.caffe import coord_map

sys.modules[__name__] = coord_map
