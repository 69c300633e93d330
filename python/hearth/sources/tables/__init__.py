"""Versions of tables whose log says which files they have: Delta and Iceberg."""
