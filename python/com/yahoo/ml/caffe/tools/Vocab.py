"""The words of captions, for programs that import them from here."""

from hearth.caffeonspark.tools.Vocab import Vocab

__all__ = ["Vocab"]
