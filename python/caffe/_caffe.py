"""Hearth's compiled module, under the name of pycaffe's compiled module."""
# ruff: noqa: F403

from hearth.native._caffe import *
