"""Another name of hearth.caffe.classifier, for the very same module."""

import sys

from hearth.caffe import classifier

sys.modules[__name__] = classifier
