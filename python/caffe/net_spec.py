"""Another name of hearth.caffe.net_spec, for the very same module."""

import sys

from hearth.caffe import net_spec

sys.modules[__name__] = net_spec
