"""An alias of hearth.caffe.proto.caffe_pb2; its classes are the same."""
# ruff: noqa: F403

from hearth.caffe.proto.caffe_pb2 import *
