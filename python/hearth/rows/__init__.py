"""Prepares Spark's and files' rows for rings: order, pinned partitions, Arrow columns, pickling."""
