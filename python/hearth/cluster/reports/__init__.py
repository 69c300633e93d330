"""Metrics and output of nodes on their way to the driver, and what the driver does with them."""
