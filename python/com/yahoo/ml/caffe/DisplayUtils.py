"""What notebooks show of rows and nets, for programs that import it from here."""

from hearth.tools.notebook import get_np_array, image_tag, show_df, show_network

__all__ = ["get_np_array", "image_tag", "show_df", "show_network"]
