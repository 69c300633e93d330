"""Captions and how a notebook shows them, for programs that import these from here."""

from hearth.caffeonspark.tools.DFConversions import DFConversions
from hearth.tools.notebook import get_image, show_captions

__all__ = ["DFConversions", "get_image", "show_captions"]
