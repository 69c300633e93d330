"""Conversion and display of captions, under the module name that CaffeOnSpark's programs import."""

from hearth.caffeonspark.tools.DFConversions import DFConversions
from hearth.tools.notebook import get_image, show_captions

__all__ = ["DFConversions", "get_image", "show_captions"]
