"""CaffeModel's tasks join blobs to their rows, with nulls for rows without a result."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hearth.caffe_jobs.predict_task import PredictSpec
from hearth.caffeonspark import jobs
from hearth.ml import caffe_rows
from hearth.ml.caffe_rows import BlobColumns, add_blobs
from hearth.rows.invalid_rows import POSITION

SPEC = BlobColumns(PredictSpec("key", {"features": ["a", "b"]}), ("data",), ("kept",))
LISTS = pa.list_(pa.float32())


def batches(*sizes):
    first = 0
    for size in sizes:
        rows = list(range(first, first + size))
        kept = pa.array([f"row {n}" for n in rows], pa.string())
        yield pa.record_batch({"kept": kept, "data": pa.array(rows, pa.int64())})
        first += size


def net(size, usable):
    """A fake trainer: returns results in groups of `size`, only for rows that are `usable`."""

    def features(spec, rows):
        table = pa.Table.from_batches(list(rows), pa.schema([("data", "i8"), ("id", "string")]))
        assert table.schema.names == ["data", "id"]
        found = [(n, name) for n, name in zip(*table.to_pydict().values(), strict=True)]
        found = [(n, name) for n, name in found if usable(n)]
        for at in range(0, len(found), size):
            numbers, names = zip(*found[at : at + size], strict=True)
            blobs = [pa.array([[n, w] for n in numbers], LISTS) for w in (1, 2)]
            positions = pa.nulls(len(numbers), pa.int64())
            yield pa.record_batch(
                [pa.array(names), *blobs, positions], ["SampleID", "a", "b", POSITION]
            )
        lost = table.num_rows - len(found)
        empty = pa.array([[]] * lost, LISTS)
        last = [pa.array([""] * lost, pa.string()), empty, empty, pa.array(range(lost), pa.int64())]
        yield pa.record_batch(last, ["SampleID", "a", "b", POSITION])

    return features


@pytest.mark.parametrize("sizes", [(10,), (1,) * 10, (3, 0, 7), (0,), ()])
@pytest.mark.parametrize("lost", [{}, {0, 1, 2}, {7, 8, 9}, {2, 3, 4}, set(range(10))])
@pytest.mark.parametrize("size", [1, 4, 10])
def test_each_row_has_its_blobs_or_nulls(monkeypatch, sizes, lost, size):
    monkeypatch.setattr(caffe_rows, "features_task", net(size, lambda n: n not in lost))
    found = list(add_blobs(SPEC, batches(*sizes)))
    assert [batch.num_rows for batch in found] == [n for n in sizes if n]
    rows = [row for batch in found for row in batch.to_pylist()]
    assert rows == [
        {
            "kept": f"row {n}",
            "a": None if n in lost else [n, 1],
            "b": None if n in lost else [n, 2],
        }
        for n in range(sum(sizes))
    ]


def test_blobs_may_have_a_length_for_each_row(monkeypatch):
    def features(spec, rows):
        for at in range(sum(batch.num_rows for batch in rows)):
            blob = pa.array([[1.0] * at], LISTS)
            yield pa.record_batch([pa.array([str(at)]), blob, blob], ["SampleID", "a", "b"])

    monkeypatch.setattr(caffe_rows, "features_task", features)
    (found,) = add_blobs(SPEC, batches(4))
    assert [len(blob) for blob in found["a"].to_pylist()] == [0, 1, 2, 3]


def test_a_net_is_found_again_by_its_texts_columns_and_weights(tmp_path):
    weights = tmp_path / "a.caffemodel"
    weights.write_bytes(b"1")
    job = {"weights": [str(weights)], "features": ["ip"]}
    key = jobs._content_key(job, "data binary")
    assert key == jobs._content_key(dict(job), "data binary")
    assert key != jobs._content_key(job, "data array<float>")
    assert key != jobs._content_key({**job, "features": ["ip2"]}, "data binary")
    weights.write_bytes(b"22")
    assert key != jobs._content_key(job, "data binary")
