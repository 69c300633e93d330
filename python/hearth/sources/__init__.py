"""Rows of files that ranks read themselves: one file for each format, behind `Source`."""
