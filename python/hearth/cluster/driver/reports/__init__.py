"""Handles metrics and output of nodes in the driver."""
