"""Rows of files that ranks read directly: one module per format, behind the interface `Source`."""
