"""Nets and solvers, under the name of the module that has them in pycaffe."""
# ruff: noqa: F403

from hearth.caffe.modes import *
from hearth.caffe.net import *
from hearth.caffe.solver import *
