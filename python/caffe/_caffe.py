"""The compiled part, under the name that it has in pycaffe."""
# ruff: noqa: F403

from hearth.native._caffe import *
