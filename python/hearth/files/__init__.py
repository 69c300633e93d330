"""Files named by URI, local folders, and TFRecord files."""
