"""Assigns partitions of datasets to ranks, delivers their rows, and persists the assignment."""
