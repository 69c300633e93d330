"""Hearth's nets and solvers, under the name of pycaffe's module."""
# ruff: noqa: F403

from hearth.caffe.modes import *
from hearth.caffe.net import *
from hearth.caffe.solver import *
