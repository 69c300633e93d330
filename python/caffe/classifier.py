"""An alias of hearth.caffe.classifier."""
# ruff: noqa: F403

from hearth.caffe.classifier import *
