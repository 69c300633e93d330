"""An alias of hearth.caffe.detector."""
# ruff: noqa: F403

from hearth.caffe.detector import *
