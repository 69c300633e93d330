"""How a notebook shows captions, for programs that import it from here."""

from hearth.tools.notebook import get_image, show_captions

__all__ = ["get_image", "show_captions"]
