"""Sends metrics and output of a node to the driver."""
