"""CaffeOnSpark's settings, for programs that import them from here."""

from hearth.caffeonspark import Config

__all__ = ["Config"]
