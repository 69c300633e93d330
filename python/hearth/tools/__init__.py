"""The commands `hearth draw`, `plot`, `parse_log`, `report`, `timeline` and `pack`."""
