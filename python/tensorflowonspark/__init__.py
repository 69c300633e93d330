"""TensorFlowOnSpark's package name, for programs that import it: hearth.tensorflowonspark."""

from hearth.tensorflowonspark import __version__

__all__ = ["__version__"]
