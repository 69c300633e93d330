"""Conversion of columns by type, which is the same for Spark's rows and for files."""

from __future__ import annotations

import datetime
import pickle
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from fed_rows import FedRows
from hearth.native._core import Pieces
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import types as sql
from pyspark.sql.pandas.types import to_arrow_type

from hearth.rows.carried_types import check_carried, uncarried_arrow
from hearth.torch.feeds import FileFeed

VECTOR = {"type": 1, "size": None, "indices": None, "values": [1.0, 2.0]}
# Type, values, the array's dtype, and the tensor's; None: a list of the values.
NUMBERS = [
    (sql.BooleanType(), [True, False, True], "bool", torch.bool),
    (sql.ByteType(), [1, -2, 3], "int8", torch.int8),
    (sql.ShortType(), [1, -2, 3], "int16", torch.int16),
    (sql.IntegerType(), [1, -2, 3], "int32", torch.int32),
    (sql.LongType(), [1, -(2**60), 3], "int64", torch.int64),
    (sql.FloatType(), [0.5, -1.5, 2.5], "float32", torch.float32),
    (sql.DoubleType(), [0.1, -1.5, 2.5], "float64", torch.float64),
]
TEXTS = [
    (sql.StringType(), ["a", None, "b\0"], "object", None),
    (sql.BinaryType(), [b"a", None, b"b\0"], "object", None),
    (sql.ArrayType(sql.StringType()), [["a", None], ["b", "c"], ["d", "e"]], "object", None),
]
LISTS = [
    (sql.ArrayType(kind), [values, values, values], dtype, tensor)
    for kind, values, dtype, tensor in NUMBERS
]
NESTED = [(sql.ArrayType(LISTS[5][0]), [LISTS[5][1]] * 3, "float32", torch.float32)]
HELD = [*NUMBERS, *TEXTS, *LISTS, *NESTED]
REFUSED = [
    (sql.DateType(), [datetime.date(2026, 1, 1)] * 3),
    (sql.TimestampType(), [datetime.datetime(2026, 1, 1)] * 3),
    (sql.TimestampNTZType(), [datetime.datetime(2026, 1, 1)] * 3),
    (sql.DecimalType(5, 2), [Decimal("1.25")] * 3),
    (sql.MapType(sql.StringType(), sql.LongType()), [{"k": 1}] * 3),
    (sql.DayTimeIntervalType(), [datetime.timedelta(1)] * 3),
    (sql.NullType(), [None] * 3),
    (sql.ArrayType(sql.DateType()), [[datetime.date(2026, 1, 1)]] * 3),
]
CARRIED_ONLY = [
    (sql.StructType([sql.StructField("a", sql.LongType())]), [{"a": 1}] * 3),
    (VectorUDT(), [VECTOR] * 3),
]
KINDS = ["spark", "arrow", "parquet"]


def rows_of(kind, values):
    is_time = isinstance(kind, sql.TimestampType)
    column = pa.array(values, pa.timestamp("us", "UTC") if is_time else to_arrow_type(kind))
    return pa.record_batch({"x": column, "n": pa.array(range(len(values)))})


def open_feed(where, batches, folder):
    """A feed of the batches: from Spark, or from a file with a batch or row group for each."""
    if where == "spark":
        fed = FedRows(folder)
        fed.partition(batches)
        fed.queue.end()
        return fed.feed()
    path = folder / f"rows.{where}"
    schema = batches[0].schema
    open_file = pa.ipc.new_file if where == "arrow" else pq.ParquetWriter
    with open_file(str(path), schema) as writer:
        for batch in batches:
            writer.write(pa.table(batch) if where == "parquet" else batch)
    return FileFeed(str(path), (), (0, 1), 1)


@pytest.mark.parametrize("where", KINDS)
@pytest.mark.parametrize(("kind", "values", "dtype", "tensor"), HELD, ids=lambda v: str(v)[:40])
def test_a_columns_array_type_is_the_same_in_every_feed(
    where, kind, values, dtype, tensor, tmp_path
):
    batches = [rows_of(kind, values[:1]), rows_of(kind, values[1:])]
    found = open_feed(where, batches, tmp_path).next_numpy(3)["x"]
    assert (found.dtype, found.shape) == (np.dtype(dtype), np.shape(values))
    assert found.tolist() == values
    (batch,) = open_feed(where, batches, tmp_path).as_iterable_dataset(3)
    if tensor is None:
        assert batch["x"] == values
    else:
        assert batch["x"].equal(torch.tensor(values, dtype=tensor))


@pytest.mark.parametrize(
    ("where", "kind", "values"),
    [
        (where, kind, values)
        for where in ("arrow", "parquet")
        for kind, values in [*REFUSED, *CARRIED_ONLY]
        if where == "arrow" or not isinstance(kind, sql.DayTimeIntervalType)  # not in Parquet
    ],
    ids=lambda v: str(v)[:40],
)
def test_files_with_other_columns_are_read_without_them(where, kind, values, tmp_path):
    feed = open_feed(where, [rows_of(kind, values)], tmp_path)
    ((numbers,),) = feed.as_iterable_dataset(3, ("n",))
    assert numbers.tolist() == [0, 1, 2]
    with pytest.raises(
        ValueError, match=r"'x' has the type .*, which arrays do not support: cast it"
    ):
        open_feed(where, [rows_of(kind, values)], tmp_path).next_numpy(3)


@pytest.mark.parametrize(("kind", "values"), CARRIED_ONLY, ids=["struct", "vector"])
def test_arrays_of_structs_and_vectors_are_refused(kind, values, tmp_path):
    assert open_feed("spark", [rows_of(kind, values)], tmp_path).next_batch(1) == [(values[0], 0)]
    feed = open_feed("spark", [rows_of(kind, values)], tmp_path)
    with pytest.raises(ValueError, match=r"'x' has the type struct.*a vector by vector_to_array"):
        feed.next_numpy(3)


def test_a_dataframe_with_a_column_that_no_ring_carries_is_refused_before_its_job():
    for kind, values, *_ in [*HELD, *CARRIED_ONLY]:
        check_carried(sql.StructType([sql.StructField("x", kind)]))
        assert not uncarried_arrow(rows_of(kind, values).schema)
    for kind, values in REFUSED:
        schema = sql.StructType([sql.StructField("x", kind)])
        with pytest.raises(
            ValueError, match=r"'x' has the type .*, which feeds do not support: cast"
        ):
            check_carried(schema)
        assert list(uncarried_arrow(rows_of(kind, values).schema)) == ["x"]


@pytest.mark.parametrize("where", KINDS)
@pytest.mark.parametrize(
    ("kind", "values"),
    [(kind, [values[0], None]) for kind, values, *_ in [*NUMBERS[:5], *LISTS]]
    + [(kind, [[values[0][0]], [None]]) for kind, values, *_ in LISTS[:5]],
    ids=lambda v: str(v)[:40],
)
def test_unsupported_nulls_are_refused_with_their_number(where, kind, values, tmp_path):
    feed = open_feed(where, [rows_of(kind, values)], tmp_path)
    with pytest.raises(ValueError, match=r"'x' \(.*\) has nulls \(1 of 2 values\).*fill them"):
        feed.next_numpy(3)


@pytest.mark.parametrize("where", KINDS)
def test_nulls_among_floats_are_nan(where, tmp_path):
    for kind, values, *_ in NUMBERS[5:]:
        for nulls, kind_of in (([values[0], None], kind), ([[values[0], None]], LISTS[5][0])):
            found = open_feed(where, [rows_of(kind_of, nulls)], tmp_path).next_numpy(2)["x"]
            np.testing.assert_array_equal(found, np.array(nulls, found.dtype))
            assert found.dtype.kind == "f"


def ragged(first, count):
    """Lists of 1 to 3 numbers, different in each row; every seventh is null."""
    lists = [None if i % 7 == 6 else [i] * (i % 3 + 1) for i in range(first, first + count)]
    return pa.record_batch({"x": pa.array(lists, pa.list_(pa.float32()))}), lists


@pytest.mark.parametrize("where", KINDS)
@pytest.mark.parametrize("rows", [1, 100])
def test_ragged_lists_do_not_depend_on_arrow_batches(where, rows, tmp_path):
    made = [ragged(first, min(rows, 101 - first)) for first in range(0, 101, rows)]
    batches, wanted = [b for b, _ in made], [row for _, lists in made for row in lists]
    feed, found = open_feed(where, batches, tmp_path), []
    while (batch := feed.next_numpy(40, ragged=("x",))) is not None:
        assert (batch["x"].dtype, batch["x"].ndim) == (np.dtype(object), 1)
        assert all(row is None or row.dtype == np.float32 for row in batch["x"])
        found += [None if row is None else row.tolist() for row in batch["x"]]
    assert found == wanted
    (whole,) = open_feed(where, batches, tmp_path).as_iterable_dataset(101, ragged=("x",))
    assert [None if row is None else row.tolist() for row in whole["x"]] == wanted
    assert whole["x"][0].dtype == torch.float32


@pytest.mark.parametrize("where", KINDS)
def test_lists_of_other_lengths_are_refused_in_any_arrow_batches(where, tmp_path):
    """Refused even if each batch and each minibatch has lists of a single length."""
    batches = [pa.record_batch({"x": [[1.0]]}), pa.record_batch({"x": [[1.0, 2.0]]})]
    feed = open_feed(where, batches, tmp_path)
    assert feed.next_numpy(1)["x"].tolist() == [[1.0]]
    with pytest.raises(ValueError, match=r"'x' has lists of different lengths \(\[1, 2\]\)"):
        feed.next_numpy(1)
    with pytest.raises(ValueError, match=r"lengths \(\[1, 2\]\).* with ragged=\('x',\)"):
        open_feed(where, batches, tmp_path).next_numpy(2)


def test_python_rows_keep_their_bytes_and_ragged_ones_are_refused(tmp_path):
    fed = FedRows(tmp_path)
    rows = [(1, b"a\0"), (2, b"bc")]
    fed.partition([Pieces([pickle.dumps(rows)]), Pieces([pickle.dumps([("x", b"d")])])])
    fed.partition([Pieces([pickle.dumps([[1.0], [1.0, 2.0]])])])
    fed.queue.end()
    feed = fed.feed()
    ids, texts = feed.next_numpy(3)
    assert (ids.tolist(), texts.tolist()) == ([1, 2, "x"], [b"a\0", b"bc", b"d"])
    with pytest.raises(
        ValueError, match="lists of different lengths, which do not fit an array: pad"
    ):
        feed.next_numpy(2)
