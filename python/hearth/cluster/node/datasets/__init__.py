"""Datasets of a node: partitions of rows, each owned by one rank.

`program` runs in the user's program, all other modules in the node's supervisor.
"""
