"""Minibatches: programs may modify them, and all rows of one have the same columns."""

from __future__ import annotations

import pickle
import threading
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fed_rows import RING_BYTES, FedRows
from hearth.native._core import Pieces

from hearth.cluster.node.file_feed import BatchSource
from hearth.torch.feeds import FileFeed

IDS = pa.array([1, 2, 3])
NAMES = pa.array(["a", "b", "c"])


def fed(folder, *partitions):
    rows = FedRows(folder)
    for number, batch in enumerate(partitions):
        rows.partition([batch], feed=f"job {number}")
    rows.queue.end()
    return rows.feed()


def taken(feed, count):
    """Takes all minibatches; their columns become lists."""
    found = []
    while not feed.should_stop():
        batch = feed.next_numpy(count)
        if isinstance(batch, dict):
            batch = {name: array.tolist() for name, array in batch.items()}
        if batch is not None:
            found.append(batch)
    return found


def test_a_minibatch_ends_before_rows_of_other_columns(tmp_path):
    """A change of columns, types or order ends a minibatch, so each value has the right name."""
    frames = [
        {"id": IDS, "x": IDS},
        {"x": NAMES, "id": IDS},
        {"id": NAMES, "x": IDS},
        {"id": IDS},
        {"id": IDS},
    ]
    found = taken(fed(tmp_path, *map(pa.record_batch, frames)), 5)
    ids, names = IDS.to_pylist(), NAMES.to_pylist()
    assert found == [
        {"id": ids, "x": ids},
        {"x": names, "id": ids},
        {"id": names, "x": ids},
        {"id": [*ids, 1, 2]},
        {"id": [3]},
    ]


def test_tuples_of_other_columns_than_before_are_refused(tmp_path):
    frames = [{"id": IDS, "x": NAMES}, {"id": IDS, "x": IDS}, {"x": NAMES, "id": IDS}]
    feed = fed(tmp_path, *map(pa.record_batch, frames))
    assert feed.next_batch(5) == [(1, "a"), (2, "b"), (3, "c")]
    assert feed.next_batch(3) == [(1, 1), (2, 2), (3, 3)]
    with pytest.raises(ValueError, match="the columns x, id, but earlier rows had id, x"):
        feed.next_batch(3)


def test_python_rows_after_columns_start_a_minibatch(tmp_path):
    rows = Pieces([pickle.dumps([(4, 5.0), (6, 7.0)])])
    frame = pa.record_batch({"id": IDS})
    first, (ids, values), last = taken(fed(tmp_path, frame, rows, frame), 10)
    assert first == last == {"id": [1, 2, 3]}
    assert (ids.tolist(), values.tolist()) == ([4, 6], [5.0, 7.0])
    assert fed(tmp_path, frame, rows).next_batch(10) == [(1,), (2,), (3,)]


def test_an_input_mapping_takes_columns_by_name_in_tuples_too(tmp_path):
    frame = pa.record_batch({"x": NAMES, "other": IDS, "id": IDS})
    rows = FedRows(tmp_path)
    rows.partition([frame, frame])
    feed = rows.feed(input_mapping={"id": "ids", "x": "names"})
    assert feed.next_batch(3) == {"ids": [1, 2, 3], "names": ["a", "b", "c"]}
    assert feed.next_numpy(3)["ids"].tolist() == [1, 2, 3]
    rows.partition([pa.record_batch({"id": IDS})], feed="b")
    with pytest.raises(ValueError, match="the rows have no column 'x'; their columns are id"):
        feed.next_batch(3)


def test_missing_and_duplicate_columns_are_named(tmp_path):
    twice = pa.RecordBatch.from_arrays([IDS, IDS], ["id", "id"])
    with pytest.raises(ValueError, match="the rows have 2 columns 'id'; their columns are id, id"):
        fed(tmp_path, twice).next_numpy(1)
    with pytest.raises(ValueError, match="the rows have no column 'ids'"):
        fed(tmp_path, pa.record_batch({"id": IDS})).next_numpy(1, ("ids",))
    with pytest.raises(ValueError, match="rows of an RDD have no columns"):
        fed(tmp_path, Pieces([pickle.dumps([1, 2])])).next_numpy(1, ("id",))


def test_batches_with_other_columns_do_not_share_a_minibatch(tmp_path):
    feed = fed(tmp_path, pa.record_batch({"id": IDS}))
    others = ({"id": IDS}, {"id": NAMES}, {"x": IDS})
    feed._source = BatchSource(map(pa.record_batch, others))
    found = taken(feed, 10)
    assert found == [{"id": [1, 2, 3]}, {"id": ["a", "b", "c"]}, {"x": [1, 2, 3]}]


def test_an_arrow_file_with_other_columns_is_named(tmp_path):
    for name, columns in (("a", {"id": IDS}), ("b", {"x": IDS})):
        with pa.ipc.new_file(str(tmp_path / f"{name}.arrow"), pa.record_batch(columns).schema) as f:
            f.write(pa.record_batch(columns))
    with pytest.raises(ValueError, match=r"column 'id' is not in .*b.arrow, which has: x"):
        taken(FileFeed(str(tmp_path), (), (0, 1), 1), 10)


def halved(tensors):
    """Checks the rows' values, then writes to the memory of all tensors."""
    batch = {name: tensor.numpy() for name, tensor in tensors.items()}
    assert (batch["image"] == batch["label"][:, None] % 7).all()
    batch["image"] /= 2
    batch["label"] += 1000
    return batch


def check_halved(batch):
    assert (batch["image"] * 2 == ((batch["label"] - 1000) % 7)[:, None]).all()


def images(count):
    labels = np.arange(count)
    pixels = np.repeat((labels % 7).astype(np.float32), 4096)
    lists = pa.FixedSizeListArray.from_arrays(pixels, 4096).cast(pa.list_(pa.float32()))
    return pa.record_batch({"image": lists, "label": labels})


def test_writes_to_tensors_do_not_affect_other_minibatches(tmp_path):
    """The pages of replayed rows are dropped after 256 MB, but pages of tensors must stay."""
    rows, kept = FedRows(tmp_path), []
    sender = threading.Thread(target=rows.partition, args=([images(400)],), kwargs={"keep": True})
    sender.start()
    for number, batch in enumerate(rows.feed().as_iterable_dataset(8)):
        batch = halved(batch)
        if number < 100 or number % 500 == 0:
            kept.append(batch)
        if number == 49:
            sender.join()
            rows.queue.replay("again", "a", 43)  # 280 MB
            rows.queue.end()
    assert number + 1 == 44 * 50
    for batch in kept:
        check_halved(batch)


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_writes_to_tensors_do_not_affect_files_or_later_epochs(kind, tmp_path):
    path, rows = tmp_path / f"rows.{kind}", images(40)
    if kind == "arrow":
        with pa.ipc.new_file(str(path), rows.schema) as file:
            file.write(rows)
    else:
        pq.write_table(pa.table(rows), path)
    before = path.read_bytes()
    kept = [halved(b) for b in FileFeed(str(path), (), (0, 1), 2).as_iterable_dataset(8)]
    assert len(kept) == 10
    for batch in kept:
        check_halved(batch)
    assert path.read_bytes() == before


def test_columns_read_twice_do_not_share_memory(tmp_path):
    pq.write_table(pa.table({"x": [1.0, 2.0]}), tmp_path / "rows.parquet")
    batch = FileFeed(str(tmp_path), ("x", "x as y"), (0, 1), 1).next_numpy(2)
    batch["x"] *= 2
    assert (batch["x"].tolist(), batch["y"].tolist()) == ([2.0, 4.0], [1.0, 2.0])


def test_ragged_lists_may_be_written_to(tmp_path):
    feed = fed(tmp_path, pa.record_batch({"x": pa.array([[1.0], [2.0, 3.0]])}))
    (batch,) = feed.as_iterable_dataset(2, ragged=("x",))
    assert [row.mul_(2).tolist() for row in batch["x"]] == [[2.0], [4.0, 6.0]]


def test_a_rank_without_rows_gets_unmodified_repeated_rows():
    """in_step() returns the repeated rows unmodified, even if the program modified them before."""
    from hearth.ranks import steps
    from hearth.torch.steps import _Tensors

    class Two(_Tensors):
        """Simulates two ranks: this one has one minibatch, the other has three."""

        def __init__(self):
            self.others = [steps.State(1, False, True)] * 3 + [steps.State(0, True, True)]

        def exchange_states(self, own):
            return [own, self.others.pop(0)]

    import torch

    found = [
        (batch.clone(), batch.log_())[0].tolist()
        for batch, _ in steps.in_step([torch.tensor([1.0, 2.0, 3.0])], 60.0, Two())
    ]
    assert found == [[1.0, 2.0, 3.0], [1.0, 3.0], [1.0, 3.0]]


def test_a_row_larger_than_the_ring_arrives_in_every_epoch(tmp_path):
    rows, frame = FedRows(tmp_path), pa.record_batch({"x": [b"a" * (3 * RING_BYTES), b"b"]})
    sender = threading.Thread(target=rows.partition, args=([frame],), kwargs={"keep": True})
    sender.start()
    feed = rows.feed()
    assert feed.next_numpy(2)["x"].tolist() == frame.column("x").to_pylist()
    sender.join()
    rows.queue.replay("again", "a", 1)
    rows.queue.end()
    assert feed.next_numpy(3)["x"].tolist() == frame.column("x").to_pylist()


def test_a_file_feed_reports_checkpoints_from_its_first_step(tmp_path):
    from hearth.ranks.steps import Ahead

    pq.write_table(pa.table({"x": [1.0] * 5}), tmp_path / "rows.parquet")
    noted = []
    feed = FileFeed(str(tmp_path), ("x",), (0, 1), 1)
    feed.mgr = SimpleNamespace(note_commit=lambda: noted.append(feed.used))
    ahead = Ahead(feed.as_iterable_dataset(2))
    assert ahead.take(60.0) is not None
    feed.commit()  # no step has used these rows yet
    assert noted == []
    ahead.given()
    feed.commit()
    assert noted == [2]
