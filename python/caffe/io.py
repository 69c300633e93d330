"""Another name of hearth.caffe.io, for the very same module."""

import sys

from hearth.caffe import io

sys.modules[__name__] = io
