"""hearth.tensorflowonspark under TensorFlowOnSpark's package name, for programs that import
that."""

from hearth.tensorflowonspark import __version__

__all__ = ["__version__"]
