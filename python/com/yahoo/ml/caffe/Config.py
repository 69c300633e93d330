"""CaffeOnSpark's settings, under the module name that its Python programs import."""

from hearth.caffeonspark import Config

__all__ = ["Config"]
