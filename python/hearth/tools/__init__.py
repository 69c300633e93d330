"""What `hearth draw`, `plot` and `parse_log` run."""
