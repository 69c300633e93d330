"""The module hearth.caffe.classifier itself, under pycaffe's name."""

import sys

from hearth.caffe import classifier

sys.modules[__name__] = classifier
