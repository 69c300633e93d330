"""The module hearth.caffe.net_spec itself, under pycaffe's name."""

import sys

from hearth.caffe import net_spec

sys.modules[__name__] = net_spec
