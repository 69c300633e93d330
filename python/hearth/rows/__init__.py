"""Spark's and files' rows on their way into rings: order, pins, Arrow columns, pickles."""
