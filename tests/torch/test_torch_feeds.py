"""Feeds as datasets of tensors, and loops over them that end on all ranks at the same step."""

from __future__ import annotations

import queue
import sys
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest

from hearth.cluster.node.file_feed import BatchSource
from hearth.cluster.node.minibatches import Minibatches
from hearth.rows.columns import Columns, ColumnsBefore
from hearth.torch import TorchCluster, in_step
from hearth.torch.feeds import FileFeed


class OneBatch:
    """A fake feed, with one batch, for a FeedDataset."""

    def __init__(self, **columns):
        self.columns = Columns(pa.record_batch(columns))
        self.given = False

    def should_stop(self):
        return self.given

    def next_numpy(self, count, columns, ragged):
        self.given = True
        return {name: self.columns.array(name, name in ragged) for name in self.columns.names}


def dataset(columns=None, **arrays):
    from hearth.torch.datasets import FeedDataset

    return FeedDataset(OneBatch(**arrays), 4, columns)


def test_numbers_and_lists_of_one_length_are_tensors_without_a_copy(recwarn):
    import torch

    pixels = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32()))
    arrays = {"image": pixels, "label": pa.array([5, 6])}
    (batch,) = dataset(**arrays)
    assert batch["image"].equal(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert batch["label"].tolist() == [5, 6]
    assert batch["image"].data_ptr() == pixels.values.buffers()[1].address
    assert not [w for w in recwarn if "not writable" in str(w.message)]
    ((label, _),) = dataset(("label", "image"), **arrays)
    assert label.tolist() == [5, 6]


def test_arrays_that_are_only_to_be_read_become_copies(recwarn):
    """The memory of read-only arrays may be shared with other code, so tensors get a copy."""
    from hearth.torch.datasets import as_tensor

    array = np.arange(3.0)
    array.flags.writeable = False
    as_tensor(array, "x").add_(1)
    assert array.tolist() == [0, 1, 2]
    assert not recwarn.list


def test_a_data_loader_takes_it_but_not_its_worker_processes():
    from torch.utils.data import DataLoader, IterableDataset

    (batch,) = DataLoader(dataset(x=pa.array([1, 2])), batch_size=None)
    assert batch["x"].tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="num_workers=0"):
        next(iter(DataLoader(dataset(x=pa.array([1, 2])), batch_size=None, num_workers=1)))

    class Rows(IterableDataset):
        def __iter__(self):
            yield from in_own_dataset(dataset(x=pa.array([1, 2])))

    assert [x.tolist() for x in DataLoader(Rows(), batch_size=None)] == [1, 2]
    with pytest.raises(RuntimeError, match="num_workers=0"):
        next(iter(DataLoader(Rows(), batch_size=None, num_workers=1)))


SHARDING = """
class IterableDatasetShard:
    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        for number, element in enumerate(self.dataset):
            if number % 2 == 0:
                yield element


class DataLoaderDispatcher:
    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        rows = iter(self.dataset)
        yield from self._fetch_batches(rows)

    def _fetch_batches(self, rows):
        yield next(rows)
"""


@pytest.fixture
def accelerate(monkeypatch):
    """Fakes of Accelerate's classes, and of a process group with two ranks."""
    import torch.distributed as dist

    module = ModuleType("accelerate.data_loader")
    exec(SHARDING, vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)
    return module


def in_own_dataset(feed_dataset):
    for batch in feed_dataset:
        yield from batch["x"]


def by_next_batch(feed_dataset):
    feed = FileFeed.__new__(FileFeed)
    Minibatches.__init__(feed, BatchSource(iter([pa.record_batch({"x": [1, 2]})])))
    while not feed.should_stop():
        yield from feed.next_batch(8)


def by_in_step(feed_dataset):
    return (batch for batch, _ in in_step(feed_dataset))


@pytest.mark.parametrize("read", [iter, in_own_dataset, by_next_batch, by_in_step])
@pytest.mark.parametrize("kind", ["IterableDatasetShard", "DataLoaderDispatcher"])
def test_samplers_that_would_divide_a_ranks_rows_again_are_refused(accelerate, kind, read):
    class Rows:
        def __iter__(self):
            return iter(read(dataset(x=pa.array([1, 2]))))

    with pytest.raises(RuntimeError, match=f"{kind} would drop rows.*get_train_dataloader"):
        next(iter(getattr(accelerate, kind)(Rows())))


def test_all_rows_are_delivered_if_they_are_not_divided(accelerate, monkeypatch):
    import torch.distributed as dist

    assert len(list(in_own_dataset(dataset(x=pa.array([1, 2]))))) == 2
    assert len(list(by_next_batch(None))) == 2
    monkeypatch.setattr(dist, "get_world_size", lambda: 1)
    sharded = accelerate.IterableDatasetShard(dataset(x=pa.array([1, 2])))
    assert len(list(sharded)) == 1  # one minibatch with both rows


def test_in_step_refuses_values_it_cannot_repeat():
    from hearth.torch.steps import _parts, _two_rows

    with pytest.raises(TypeError, match="'png' is a list"):
        _parts({"png": [b"a"]})
    assert list(in_step([1, 2])) == [(1, 1.0), (2, 1.0)]  # works without a process group
    import torch

    assert _two_rows((torch.tensor([[7]]),))[0].tolist() == [[7], [7]]


def test_ranks_with_uneven_rows_step_together_and_each_row_has_the_same_weight(spark, notes):
    """Rows of 40 KB: first nine partitions, so that one node gets more, then a single one."""

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
    assert first[0] == second[0]  # the same number of steps
    assert first[1] + second[1] == 401
    assert first[2] == second[2] == pytest.approx(sum(range(301)) + sum(range(100)))


class Source:
    """Returns one row at a time, blocking until there is one; records what is committed."""

    def __init__(self):
        self.rows, self.taken, self.ended = queue.Queue(), 0, False
        self.commits = []

    def take(self, count, across_partitions, arrays):
        self.ended = (row := self.rows.get()) is None
        self.taken += not self.ended
        return [] if self.ended else [[row]]

    def commit(self, rows=None):
        self.commits.append(self.taken if rows is None else rows)


def feed_of(source):
    from hearth.torch.feeds import DataFeed

    feed = DataFeed.__new__(DataFeed)
    feed.mgr, feed._source, feed._columns, feed.input_tensors = None, source, None, None
    feed.train_mode, feed.done_feeding = True, False
    feed._columns_before = ColumnsBefore()
    return feed


def decoded(feed):
    """A generator, as in programs that decode images."""
    for batch in feed.as_iterable_dataset(8):
        yield batch * 2


def loader(feed):
    from torch.utils.data import DataLoader

    return DataLoader(feed.as_iterable_dataset(8), batch_size=None)


@pytest.mark.parametrize("batches", [decoded, loader])
def test_rows_that_no_step_has_used_yet_are_not_committed(batches):
    from hearth.ranks.steps import Ahead

    source = Source()
    feed = feed_of(source)
    source.rows.put(1)
    assert len(feed.next_batch(8)) == 1  # taken by the program itself
    ahead = Ahead(batches(feed))
    source.rows.put(2)
    assert ahead.take(60.0) is not None
    feed.commit()  # in an earlier step, with weight 0
    ahead.given()
    feed.commit()
    assert ahead.take(0.0) is None
    source.rows.put(3)
    assert ahead.take(60.0) is not None
    feed.commit()
    feed.commit(3)  # a commit by the program
    ahead.given()
    feed.commit()
    source.rows.put(None)
    assert ahead.take(60.0) is None and ahead.ended
    feed.commit()
    assert source.commits == [1, 2, 2, 3, 3, 3]
    assert feed.used is None
