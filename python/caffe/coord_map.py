"""Another name of hearth.caffe.coord_map, for the very same module."""

import sys

from hearth.caffe import coord_map

sys.modules[__name__] = coord_map
