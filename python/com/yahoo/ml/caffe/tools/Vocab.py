"""The vocabulary of captions, under the module name that CaffeOnSpark's programs import."""

from hearth.caffeonspark.tools.Vocab import Vocab

__all__ = ["Vocab"]
