"""A source's files whose column types differ from the source's schema."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hearth.cluster.node.file_feed import FileFeed
from hearth.sources.pinned_types import in_type

MOMENT = datetime.datetime(2026, 1, 1)
REFUSED = [
    (pa.array([5, 0]), pa.bool_(), "is int64, but bool in the source"),
    (pa.array([True]), pa.int64(), "is bool, but int64 in the source"),
    (pa.array([5]), pa.string(), "is int64, but string in the source"),
    (pa.array(["5"]), pa.int64(), "is string, but int64 in the source"),
    (pa.array([MOMENT]), pa.int64(), r"is timestamp\[us\], but int64 in the source"),
    (pa.array([1]), pa.list_(pa.int64()), "is int64, but list"),
    (pa.array([{"a": 1}]), pa.struct({"b": pa.int64()}), "is struct"),
    (pa.array([2**40]), pa.int32(), "1099511627776"),
    (pa.array([1.5]), pa.int64(), "1.5"),
    (pa.array([2**60 + 1]), pa.float64(), "1152921504606846977"),
    (pa.array([b"\xff"]), pa.string(), "UTF8"),
    (pa.array([0.5, 1e300]), pa.float32(), "type double that do not fit its type .* float"),
    (pa.array([[[1e300]]]), pa.list_(pa.list_(pa.float32())), "do not fit its type"),
]
KEPT = [
    (pa.array([7], pa.int32()), pa.int64()),
    (pa.array([2**53]), pa.float64()),
    (pa.array([float("inf"), 0.5, None]), pa.float32()),
    (pa.array(["a", None]).dictionary_encode(), pa.large_string()),
    (pa.array([[1, 2]], pa.list_(pa.field("element", pa.int32()))), pa.list_(pa.int64())),
    (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), pa.list_(pa.int64())),
    (pa.array([{"a": 1}], pa.struct({"a": pa.int32()})), pa.struct({"a": pa.int64()})),
    (pa.array([None, None]), pa.int64()),
    (pa.array([MOMENT], pa.timestamp("ms")), pa.timestamp("us")),
    (pa.array([b"a"]), pa.string()),
]


@pytest.mark.parametrize(("column", "kind", "said"), REFUSED, ids=lambda v: str(v)[:30])
def test_a_column_that_would_have_other_values_is_refused(column, kind, said):
    with pytest.raises(ValueError, match=f"the column 'x'.*{said}"):
        in_type(column, pa.field("x", kind))


@pytest.mark.parametrize(("column", "kind"), KEPT, ids=lambda v: str(v)[:30])
def test_values_stay_in_another_type_of_their_kind(column, kind):
    found = in_type(column, pa.field("x", kind))
    wanted = [v.decode() if isinstance(v, bytes) else v for v in column.to_pylist()]
    assert found.type == kind and found.to_pylist() == wanted


def test_the_file_is_named(tmp_path):
    for name, values in (("a", pa.array([1.0], pa.float32())), ("b", pa.array([1e300]))):
        pq.write_table(pa.table({"x": values}), tmp_path / f"{name}.parquet")
    feed = FileFeed(str(tmp_path), (), (0, 1), 1)
    with pytest.raises(ValueError, match=r"b\.parquet cannot be read as Parquet: the column 'x'"):
        while not feed.should_stop():
            feed.next_numpy(1)
