"""Metrics and output of a node on their way to the driver."""
