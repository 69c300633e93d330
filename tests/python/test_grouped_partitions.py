"""Spark tasks that deliver several partitions of a dataset."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
from hearth.native._core import PartitionWriter

from hearth.cluster.task import dataset_task
from hearth.cluster.task.dataset_task import DatasetSpec, deliver_task

SPEC = DatasetSpec("train", "", (), (), grouped=True)


def batch(*partitions):
    """A batch with one row for each partition number."""
    ids = pa.array(range(len(partitions)), pa.int64())
    lists = pa.array([[i, i] for i in range(len(partitions))], pa.list_(pa.int64()))
    columns = [ids, lists, pa.array(partitions, pa.int32())]
    return pa.RecordBatch.from_arrays(columns, ["id", "id", "number"])


@pytest.fixture
def delivered(monkeypatch):
    found = []

    def deliver(spec, partition, attempt, batches):
        rows = [row for rows in batches for row in rows.column(0).to_pylist()]
        found.append((partition, rows))
        return len(rows), "00"

    monkeypatch.setattr(dataset_task, "deliver", deliver)
    return found


def test_a_task_delivers_each_of_its_partitions_once(delivered):
    batches = [batch(4, 4, 4), batch(4, 5), batch(), batch(7), batch(7, 8, 8)]
    results = [result.to_pylist()[0] for result in deliver_task(SPEC, iter(batches))]
    assert delivered == [(4, [0, 1, 2, 0]), (5, [1]), (7, [0, 0]), (8, [1, 2])]
    assert [(row["partition"], row["rows"]) for row in results] == [(4, 4), (5, 1), (7, 2), (8, 2)]


def test_another_task_has_one_partition_also_without_rows(delivered, monkeypatch):
    monkeypatch.setattr(dataset_task, "partition_id", lambda: 9)
    plain = DatasetSpec("train", "", (), ())
    for batches in ([], [batch(4, 5)]):
        (result,) = deliver_task(plain, iter(batches))
        assert result.to_pylist()[0]["partition"] == 9
    assert delivered == [(9, []), (9, [0, 1])]


def test_rows_that_a_node_has_already_are_skipped(monkeypatch):
    seen = []

    def deliver(spec, partition, attempt, batches):
        seen.append((partition, next(batches).num_rows if partition == 2 else 0))
        return 3, "00"

    monkeypatch.setattr(dataset_task, "deliver", deliver)
    results = list(deliver_task(SPEC, iter([batch(1, 1, 2), batch(2, 2), batch(3)])))
    assert seen == [(1, 0), (2, 1), (3, 0)] and len(results) == 3


def test_a_slice_is_written_like_a_separate_batch(tmp_path):
    whole = pa.record_batch(
        {
            "text": ["a", None, "ccc", "", "eeeee", "f"],
            "numbers": [[1], [], None, [4, 4], [5], [6, 6, 6]],
            "flag": [True, False, None, True, True, False],
            "one": pa.array(range(6), pa.int64()),
        }
    )
    own = pa.RecordBatch.from_pylist(whole.slice(2, 3).to_pylist(), whole.schema)
    written = []
    for number, rows in enumerate((whole.slice(2, 3), own)):
        with open(tmp_path / f"{number}", "w+b") as file:
            writer = PartitionWriter(os.dup(file.fileno()))
            written.append((*writer.write(rows), writer.hash))
            writer.close()
    assert written[0] == written[1] and written[0][1] == 3
