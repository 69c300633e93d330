"""Rows of partition files as a rank's program reads them: order, arrays, waits."""

import os
import signal
import socket
import tempfile
import threading

import numpy as np
import pyarrow as pa
import pytest

import hearth
from hearth.native import _core


def partition_file():
    with tempfile.TemporaryFile(buffering=0) as file:
        return os.dup(file.fileno())


def some_rows(first, count):
    numbers = np.arange(first, first + count)
    floats = np.repeat(numbers, 3).astype("float32")
    return pa.record_batch(
        {
            "id": pa.array(numbers),
            "x": pa.FixedSizeListArray.from_arrays(pa.array(floats), 3),
            "list": pa.array([[n, n] for n in numbers.tolist()], pa.list_(pa.int32())),
            "text": pa.array([f"row {n}" for n in numbers]),
            "bytes": pa.array([b"%d" % n for n in numbers]),
            "odd": pa.array((numbers % 2 == 1).tolist()),
            "ragged": pa.array([[0.5] * (n % 3) for n in numbers], pa.list_(pa.float32())),
            "gaps": pa.array([None if n % 5 == 0 else n for n in numbers.tolist()], pa.int64()),
            "nested": pa.array([[{"a": n}] for n in numbers.tolist()]),
        }
    )


def announce(rows, partition, batches, attempt=0):
    """Writes a partition, and announces each batch separately."""
    file = partition_file()
    writer = _core.PartitionWriter(os.dup(file))
    for batch in batches:
        size, count = writer.write(batch)
        rows.grow(partition, attempt, file, size, count, False)
        file = -1
    rows.grow(partition, attempt, file, size, count, True, writer.hash)


def dataset():
    """Partitions 2 and 5 with 1,500 rows each."""
    rows = _core.DatasetRows([5, 2], 60.0)
    for partition in (5, 2):
        batches = [some_rows(10_000 * partition + at, 500) for at in range(0, 1500, 500)]
        announce(rows, partition, batches)
    return rows


def reader_of(rows, mode="window"):
    reader = _core.EpochReader(rows, 7, mode)
    reader.start(0)
    return reader


def ids_of(reader, size=100):
    taken = []
    while len(rows := reader.take(100 * len(taken), size)):
        taken.append(rows.gather("id"))
    return np.concatenate(taken)


def test_an_epoch_has_each_row_once():
    every = [*range(20_000, 21_500), *range(50_000, 51_500)]
    for mode in ("none", "window", "full"):
        ids = ids_of(reader_of(dataset(), mode))
        assert (ids.tolist() == every) == (mode == "none")
        assert sorted(ids.tolist()) == every


def test_columns_become_separate_arrays():
    rows = reader_of(dataset()).take(0, 100)
    ids = rows.gather("id")
    x = rows.gather("x")
    assert (x == np.repeat(ids, 3).reshape(-1, 3)).all() and x.dtype == np.float32
    assert x.flags.owndata and x.flags.writeable
    assert (rows.gather("list") == np.repeat(ids, 2).reshape(-1, 2)).all()
    assert rows.gather("text") == [f"row {n}" for n in ids]
    assert rows.gather("bytes") == [b"%d" % n for n in ids]
    assert (rows.gather("odd") == (ids % 2 == 1)).all()
    assert [len(row) for row in rows.gather("ragged", ragged=True)] == (ids % 3).tolist()
    x[:] = 0
    assert rows.gather("x").any()


def test_numbers_are_converted_to_a_type_that_holds_them():
    rows = reader_of(dataset()).take(0, 100)
    assert rows.gather("id", "float32").dtype == np.float32
    assert (rows.gather("x", np.int64) == rows.gather("x")).all()
    with pytest.raises(ValueError, match=r"'id' has the value .* which int8 cannot hold"):
        rows.gather("id", np.int8)


def test_a_value_that_fits_no_array_is_an_error_with_the_column():
    rows = reader_of(dataset()).take(0, 100)
    with pytest.raises(ValueError, match=r"'gaps' \(int64\) has nulls \(\d+ of 100 values\)"):
        rows.gather("gaps")
    with pytest.raises(ValueError, match="'ragged' has lists of different lengths"):
        rows.gather("ragged")
    with pytest.raises(ValueError, match="no column 'y'; their columns are: id, x"):
        rows.gather("y")


def test_other_types_are_left_to_pyarrow():
    rows = reader_of(dataset()).take(0, 100)
    assert rows.gather("nested") is None
    ids = rows.gather("id").tolist()
    batch = pa.record_batch(rows.record_batch(["nested", "gaps"]))
    assert batch.column("nested").to_pylist() == [[{"a": n}] for n in ids]
    assert batch.column("gaps").to_pylist() == [None if n % 5 == 0 else n for n in ids]
    whole = pa.record_batch(rows)
    assert whole.schema.names == some_rows(0, 1).schema.names
    whole.validate(full=True)


def test_a_row_has_one_seed_in_each_epoch():
    reader = reader_of(dataset())
    seeds = dict(zip(ids_of(reader), reader.take(0, 3000).ids(), strict=True))
    assert len(set(seeds.values())) == 3000
    reader = reader_of(dataset(), "full")
    rows = reader.take(0, 100)
    assert [seeds[n] for n in rows.gather("id")] == rows.ids().tolist()
    reader.start(1)
    assert not set(reader.take(0, 100).ids().tolist()) & set(seeds.values())


def test_the_rest_of_an_epoch_has_the_other_rows():
    reader = reader_of(dataset())
    used = reader.take(0, 1234).indices()
    consumed = _core.consumed_rows([1500, 1500], 7, 0, "window", 1234)
    assert sorted(used) == np.flatnonzero(consumed).tolist()
    reader.start(0, np.flatnonzero(~consumed).astype("uint32"))
    assert reader.rows() == 3000 - 1234
    assert sorted(reader.take(0, 3000).indices()) == np.flatnonzero(~consumed).tolist()


def test_a_remote_task_sends_the_same_rows():
    here, there = socket.socketpair()
    with here, there:
        file, committed = partition_file(), []

        def send():
            sender = _core.PartitionSender(there.fileno())
            for at in range(0, 1500, 500):
                sender.write(some_rows(at, 500))
            sender.end()
            sent.append(sender.hash)

        sent = []
        task = threading.Thread(target=send)
        task.start()
        size, count, found = _core.receive_partition(
            here.fileno(), file, lambda *done: committed.append(done)
        )
        task.join()
    assert committed[-1] == (size, count) and count == 1500 and [found] == sent
    rows = _core.DatasetRows([0], 60.0)
    rows.grow(0, 0, file, size, count, True, found)
    assert ids_of(reader_of(rows, "none")).tolist() == list(range(1500))


def test_a_failure_ends_a_wait():
    rows = _core.DatasetRows([0], 60.0)
    threading.Timer(0.1, rows.fail, ["the node was lost"]).start()
    with pytest.raises(hearth.HearthError, match="the node was lost"):
        reader_of(rows).take(0, 1)


def test_a_handler_of_a_signal_ends_a_wait():
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            _core.DatasetRows([0], 60.0).rows_of_rank()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_rows_are_kept_while_they_are_used():
    rows = reader_of(dataset()).take(0, 100)  # dataset and reader are already deleted
    assert len(set(rows.gather("id").tolist())) == 100
