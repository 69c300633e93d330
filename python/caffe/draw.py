"""An alias of hearth.caffe.draw."""
# ruff: noqa: F403

from hearth.caffe.draw import *
