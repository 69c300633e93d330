"""Datasets of a node: rows in partitions that each belong to one rank.

`files`, `held` and `keeper` run in the node's supervisor, `reader` in a process that this starts,
`program` in the user's program.
"""
