"""Assigns partitions of datasets to ranks, has their rows delivered, and keeps that plan."""
