"""Datasets with spool=False: each epoch reads the files again, in windows of splits."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest

from hearth.cluster.node.datasets.program import Plan
from hearth.data import streamed
from hearth.data.loader import Loader
from hearth.data.options import LoaderOptions


class Source:
    """Splits with these row counts, in batches of 7; ids number all rows."""

    uri = "here"

    def __init__(self, *rows):
        self.rows, self.pinned, self.reads = rows, rows, []

    def schema(self):
        return pa.schema({"id": pa.int64()})

    def splits(self):
        return [
            SimpleNamespace(number=i, rows=rows, bytes=rows * 8)
            for i, rows in enumerate(self.pinned)
        ]

    def read(self, split):
        self.reads.append(split.number)
        first = sum(self.rows[: split.number])
        rows = self.rows[split.number]
        for at in range(0, rows, 7):
            ids = range(first + at, first + min(at + 7, rows))
            yield pa.record_batch({"id": pa.array(ids, pa.int64())})


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(streamed, "_WINDOW_ROWS", 40)


def loader(source, owners=(0, 0, 0, 0, 0), rank=0, identity="", **options):
    plan = Plan(rank, max(owners) + 1, tuple(owners), identity)
    dataset = streamed.StreamedDataset("train", plan, source)
    return Loader(dataset, LoaderOptions(16, **options))


def ids(batches):
    return [batch["id"].tolist() for batch in batches]


def test_every_row_is_delivered_once_per_epoch_in_another_order():
    source = Source(30, 25, 1, 60, 34)
    made = loader(source)
    epochs = [[i for batch in ids(made) for i in batch] for _ in range(3)]
    for epoch in epochs:
        assert sorted(epoch) == list(range(150))
    assert epochs[0] != epochs[1] != epochs[2]
    assert [i for batch in ids(loader(source)) for i in batch] == epochs[0]


def test_rows_are_in_order_without_shuffling():
    batches = ids(loader(Source(30, 25, 1, 60, 34), shuffle=False))
    assert [i for batch in batches for i in batch] == list(range(150))


def test_it_resumes_at_the_next_row_and_reads_no_window_before():
    whole = loader(Source(30, 25, 1, 60, 34))
    expected = ids(whole) + ids(whole)
    first = loader(Source(30, 25, 1, 60, 34))
    batches = iter(first)
    taken = [next(batches)["id"].tolist() for _ in range(8)]
    source = Source(30, 25, 1, 60, 34)
    second = loader(source)
    second.load_state_dict(first.state_dict())
    rest = iter(second)
    taken.append(next(rest)["id"].tolist())
    assert len(set(source.reads)) < 5
    taken += ids(rest) + ids(second)
    assert taken == expected


def test_a_rank_with_fewer_rows_repeats_some():
    source = Source(30, 25, 1, 60, 34)
    ranks = [loader(source, (0, 1, 0, 1, 0), rank) for rank in (0, 1)]
    taken = [[i for batch in ids(made) for i in batch] for made in ranks]
    assert [len(rows) for rows in taken] == [85, 85]
    assert set(taken[0]) | set(taken[1]) == set(range(150))
    assert [made.repeated_rows for made in ranks] == [20, 0]


def test_writing_into_a_batch_does_not_change_later_epochs():
    made = loader(Source(32, 64), (0, 1))
    taken = []
    for batch in made:
        taken += batch["id"].tolist()
        batch["id"] += 1000
    assert len(taken) == 64 and set(taken) == set(range(32))


def test_files_that_changed_are_an_error():
    source = Source(30, 25)
    made = loader(source, (0, 0))
    source.rows = (30, 24)
    with pytest.raises(ValueError, match="a split of here has 24 rows instead of 25"):
        ids(made)


def test_a_state_of_other_files_with_as_many_rows_is_an_error():
    state = loader(Source(30, 25), (0, 0), identity="before").state_dict()
    changed = r"dataset 'train' has changed since its state .* \(saved with before, now now\)"
    with pytest.raises(ValueError, match=changed):
        loader(Source(30, 25), (0, 0), identity="now").load_state_dict(state)


def test_other_ranks_are_refused_in_the_midst_of_an_epoch():
    first = loader(Source(30, 25), (0, 1))
    next(iter(first))
    second = loader(Source(30, 25), (0, 0))
    second.load_state_dict(first.state_dict())
    with pytest.raises(ValueError, match="only at the beginning of an epoch"):
        ids(second)


def test_seeds_of_rows_do_not_depend_on_the_point_of_resumption():
    def seeds(batch, numbers):
        return dict(zip(batch["id"].tolist(), numbers.tolist(), strict=True))

    whole = {}
    for batch in loader(Source(30, 25), (0, 0), map=seeds):
        whole |= batch
    first = loader(Source(30, 25), (0, 0), map=seeds)
    batches = iter(first)
    next(batches)
    second = loader(Source(30, 25), (0, 0), map=seeds)
    second.load_state_dict(first.state_dict())
    resumed = {}
    for batch in second:
        resumed |= batch
    assert len(set(whole.values())) == 55
    assert resumed == {i: whole[i] for i in resumed} and len(resumed) == 55 - 16
