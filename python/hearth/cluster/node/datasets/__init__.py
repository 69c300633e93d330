"""Datasets of a node: rows in partitions that each belong to one rank.

All but `program`, which runs in the user's program, run in the node's supervisor.
"""
