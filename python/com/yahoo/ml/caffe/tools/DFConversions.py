"""Conversion of captions, and their display in notebooks, for programs that import them from
here."""

from hearth.caffeonspark.tools.DFConversions import DFConversions
from hearth.tools.notebook import get_image, show_captions

__all__ = ["DFConversions", "get_image", "show_captions"]
