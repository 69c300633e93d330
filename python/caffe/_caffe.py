"""The compiled module, under its name in pycaffe."""
# ruff: noqa: F403

from hearth.native._caffe import *
