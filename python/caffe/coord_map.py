"""An alias of hearth.caffe.coord_map."""
# ruff: noqa: F403

from hearth.caffe.coord_map import *
