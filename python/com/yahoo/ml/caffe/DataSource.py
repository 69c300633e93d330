"""CaffeOnSpark's data sources, under the module name that its Python programs import."""

from hearth.caffeonspark import DataSource

__all__ = ["DataSource"]
