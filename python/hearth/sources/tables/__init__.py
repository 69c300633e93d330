"""Versions of tables whose log lists their files: Delta and Iceberg."""
