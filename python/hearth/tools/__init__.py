"""What `hearth draw`, `plot`, `parse_log` and `pack` run."""
