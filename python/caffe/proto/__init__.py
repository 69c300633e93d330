"""An alias of hearth.caffe.proto."""

from hearth.caffe.proto import __getattr__ as __getattr__
