"""Datasets of a cluster's nodes: rows in partitions that each belong to one rank.

`delivery` runs in the driver, `task` in Spark's tasks and in `reader` processes, `files` in a
node's supervisor, `node` in the program of the node.
"""
