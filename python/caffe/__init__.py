"""The package that Caffe programs import: an alias of hearth.caffe."""
# ruff: noqa: F401, F403

import hearth.caffe
from caffe import _caffe, classifier, coord_map, detector, draw, io, net_spec, proto, pycaffe
from hearth.caffe import *
from hearth.caffe import __all__, __version__
