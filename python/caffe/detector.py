"""Another name of hearth.caffe.detector, for the very same module."""

import sys

from hearth.caffe import detector

sys.modules[__name__] = detector
