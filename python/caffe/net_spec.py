"""An alias of hearth.caffe.net_spec."""
# ruff: noqa: F403

from hearth.caffe.net_spec import *
