"""The rows of the tests' tables, and functions that read them from sources."""

from __future__ import annotations

import itertools

import pyarrow as pa


def rows(begin: int, end: int) -> pa.Table:
    ids = range(begin, end)
    x = pa.array([[i, i + 0.5] for i in ids], pa.list_(pa.float32()))
    return pa.table({"id": pa.array(ids, pa.int64()), "x": x})


def read(source) -> pa.Table:
    batches = itertools.chain.from_iterable(map(source.read, source.splits()))
    return pa.Table.from_batches(batches, source.schema())


def ids(source) -> list[int]:
    return sorted(read(source).column("id").to_pylist())
