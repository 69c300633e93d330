"""An alias of hearth.caffe.io."""
# ruff: noqa: F403

from hearth.caffe.io import *
