"""Display of rows and nets in notebooks, under CaffeOnSpark's module name."""

from hearth.tools.notebook import get_np_array, image_tag, show_df, show_network

__all__ = ["get_np_array", "image_tag", "show_df", "show_network"]
