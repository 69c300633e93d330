"""CaffeOnSpark's sources, for programs that import them from here."""

from hearth.caffeonspark import DataSource

__all__ = ["DataSource"]
