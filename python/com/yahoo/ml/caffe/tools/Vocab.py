"""The vocabulary of captions, for programs that import it from here."""

from hearth.caffeonspark.tools.Vocab import Vocab

__all__ = ["Vocab"]
