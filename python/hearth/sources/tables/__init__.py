"""Versions of tables that list their files in a log: Delta and Iceberg."""
