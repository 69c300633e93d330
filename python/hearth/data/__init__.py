"""Datasets for programs in a cluster: sources of files, and the loaders of ctx.dataset()."""
