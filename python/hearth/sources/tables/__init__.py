"""Versions of tables of which a log lists the files: Delta and Iceberg."""
