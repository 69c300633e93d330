"""Datasets and transforms of training data."""
