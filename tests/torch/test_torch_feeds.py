"""Feeds as datasets of tensors, and loops over them that end on all ranks together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hearth.rows.columns import Columns
from hearth.torch import TorchCluster, in_step


class OneBatch:
    """What a FeedDataset needs of a feed."""

    def __init__(self, **columns):
        self.columns = Columns(pa.record_batch(columns))
        self.given = False

    def should_stop(self):
        return self.given

    def next_numpy(self, count):
        self.given = True
        return {name: self.columns.array(name) for name in self.columns.names}


def dataset(columns=None, writable=False, **arrays):
    from hearth.torch.datasets import FeedDataset

    return FeedDataset(OneBatch(**arrays), 4, columns, writable)


def test_numbers_and_lists_of_one_length_are_tensors_where_the_rows_lie(recwarn):
    import torch

    pixels = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32()))
    arrays = {"image": pixels, "label": pa.array([5, 6])}
    (batch,) = dataset(**arrays)
    assert batch["image"].equal(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert batch["label"].tolist() == [5, 6]
    lies_at = pixels.values.buffers()[1].address
    assert batch["image"].data_ptr() == lies_at
    assert not [w for w in recwarn if "not writable" in str(w.message)]
    ((label, image),) = dataset(("label", "image"), writable=True, **arrays)
    assert image.data_ptr() != lies_at
    image += 1
    assert (label.tolist(), pixels.to_pylist()[0]) == ([5, 6], [1.0, 2.0])


def test_what_is_no_tensor_is_a_list_or_an_error_with_its_column():
    (batch,) = dataset(png=pa.array([b"a", b"bc"]), flag=pa.array([True, False]))
    assert batch["png"] == [b"a", b"bc"]
    assert batch["flag"].tolist() == [True, False]
    with pytest.raises(ValueError, match=r"'x' has lists of different lengths.*pad them"):
        next(iter(dataset(x=pa.array([[1.0], [1.0, 2.0]]))))
    with pytest.raises(ValueError, match=r"'day' has the type datetime64.*cast it in Spark"):
        next(iter(dataset(day=pa.array(np.array(["2026-01-01"], "datetime64[s]")))))
    with pytest.raises(ValueError, match="no column 'imag': they have image"):
        next(iter(dataset(("imag",), image=pa.array([1.0]))))


def test_a_data_loader_takes_it_but_not_its_worker_processes():
    from torch.utils.data import DataLoader

    (batch,) = DataLoader(dataset(x=pa.array([1, 2])), batch_size=None)
    assert batch["x"].tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="num_workers=0"):
        next(iter(DataLoader(dataset(x=pa.array([1, 2])), batch_size=None, num_workers=1)))


def test_in_step_refuses_what_it_could_not_repeat():
    from hearth.torch.steps import _parts, _two_rows

    with pytest.raises(TypeError, match="'png' is a list"):
        _parts({"png": [b"a"]})
    assert list(in_step([1, 2])) == [(1, 1.0), (2, 1.0)]  # without a process group
    import torch

    assert _two_rows((torch.tensor([[7]]),))[0].tolist() == [[7], [7]]


def test_ranks_with_uneven_rows_step_together_and_each_row_has_the_same_weight(spark, notes):
    """Nine partitions, of which one node gets more, with rows of 40 KB; and only one at last."""

    def main(notes, ctx):
        import torch
        import torch.distributed as dist

        from hearth.torch import in_step

        dist.init_process_group(ctx.backend)
        feed = ctx.get_data_feed()
        steps, rows, total = 0, 0, torch.zeros(1, dtype=torch.float64)
        for batch, weight in in_step(feed.as_iterable_dataset(16), patience_s=0.1):
            assert batch["payload"].shape[1:] == (10000,)
            assert (batch["payload"][:, 0] == batch["id"]).all()
            share = batch["id"].double().mean() * weight / ctx.world_size
            dist.all_reduce(share)
            count = torch.tensor([len(batch["id"]) if weight else 0])
            dist.all_reduce(count)
            total += share * count  # the mean over the step's rows, times their number
            steps += 1
            rows += len(batch["id"]) if weight else 0
        notes.write(ctx, [steps, rows, total.item()])

    def payloads(batches):
        for batch in batches:
            ids = batch.column(0).to_numpy()
            offsets = pa.array(range(0, 10000 * len(ids) + 1, 10000), pa.int32())
            values = pa.array(np.repeat(ids.astype(np.float32), 10000))
            lists = pa.ListArray.from_arrays(offsets, values)
            yield pa.record_batch({"id": batch.column(0), "payload": lists})

    with TorchCluster.run(spark, main, notes, workers=2) as cluster:
        for rows, parts in ((spark.range(0, 301, 1, 9), 9), (spark.range(0, 100, 1, 1), 1)):
            fed = rows.mapInArrow(payloads, "id long, payload array<float>")
            assert fed.rdd.getNumPartitions() == parts
            cluster.train(fed)
    first, second = notes.read().values()
    assert first[0] == second[0]  # as many steps
    assert first[1] + second[1] == 401
    assert first[2] == second[2] == pytest.approx(sum(range(301)) + sum(range(100)))


def test_rows_that_no_step_has_used_yet_are_not_committed():
    import threading

    import torch

    from hearth.collective.steps import Ahead
    from hearth.torch.feeds import DataFeed

    commits, came = [], threading.Event()

    class Source:
        def commit(self, rows=None):
            commits.append(feed.ahead)

    class Rows:
        def __iter__(self):
            came.wait()
            yield torch.zeros(3)

    feed = DataFeed.__new__(DataFeed)
    feed._source = Source()
    rows = Rows()
    rows.feed = feed
    ahead = Ahead(rows)
    assert ahead.take(0.0) is None
    feed.commit()
    came.set()
    assert ahead.take(60.0).tolist() == [0, 0, 0]
    feed.commit()
    assert commits == []
    ahead.given()
    feed.commit()
    assert commits == [False]
    assert ahead.take(60.0) is None
    assert ahead.ended
    assert not feed.ahead
