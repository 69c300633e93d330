"""Ranks read their shares of far Parquet files, near the blocks where they can."""

import itertools
import os
import pickle
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from table_files import ROWS, write_parquet

from hearth.rows.far_rows import FarRows
from hearth.rows.file_parts import Block, StoredFile
from hearth.rows.row_epochs import RowEpochs
from hearth.trainer.ring_feed import FileFeed, Place, ranks_of


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """A file on the host "a", one on "b": of this machine's disk, as the core reads that, too."""
    monkeypatch.setattr("hearth.rows.file_parts._LEAST_BYTES", 100)
    write_parquet(tmp_path)
    files = [
        StoredFile(path.as_uri(), path.stat().st_size, (Block(0, 1 << 30, frozenset({host})),))
        for path, host in zip(sorted(tmp_path.iterdir()), "ab", strict=True)
    ]
    return FarRows(tmp_path.as_uri(), (("id", "number"),), tuple(files))


def named(hosts):
    return [frozenset((host,)) for host in hosts]


def ids(batches):
    return [value for batch in batches for value in batch.column("number").to_pylist()]


@pytest.mark.parametrize("world", [1, 2, 5])
@pytest.mark.parametrize("hosts", [(), ("b", "a", "c", "a", "b")])
def test_each_row_is_read_by_one_rank(rows, world, hosts):
    rows = rows.placed(named(hosts[:world]))
    shares = [ids(rows.read(rank, world)) for rank in range(world)]
    assert sorted(itertools.chain.from_iterable(shares)) == list(range(ROWS))
    assert sum(map(bool, shares)) == min(world, 5)


@pytest.mark.parametrize("world", [1, 2])
def test_each_epoch_has_each_row_once(rows, world):
    epochs = [
        RowEpochs(rows.placed(named("ba"[:world])), 3).read(r, world, 4) for r in range(world)
    ]
    seen = [ids(itertools.chain.from_iterable(next(share) for share in epochs)) for _ in range(2)]
    assert [sorted(epoch) for epoch in seen] == [list(range(ROWS))] * 2
    assert seen[0] != seen[1]


@pytest.mark.parametrize("world", [2, 3])
def test_small_files_are_shared_by_rows(rows, world, monkeypatch):
    monkeypatch.setattr("hearth.rows.file_parts._LEAST_BYTES", 1 << 20)
    rows = replace(rows, files=rows.files[:1])
    whole = ids(rows.read(0, 1))
    uneven = [len(ids(rows.read(rank, world))) for rank in range(world)]
    assert sorted(uneven) == [0] * (world - 1) + [len(whole)]

    even = pickle.loads(pickle.dumps(rows.evened(world))).placed(named("abc"[:world]))
    near = f"in equal numbers of rows, {100 / world:.0f} % of it on their own hosts"
    assert even.told(world).endswith(near)  # the file is on the first rank's host
    shares = [ids(even.read(rank, world)) for rank in range(world)]
    assert list(itertools.chain.from_iterable(shares)) == whole
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    epochs = RowEpochs(even, 3)
    for rank, share in enumerate(shares):
        assert sorted(ids(next(epochs.read(rank, world, 0)))) == share
    assert len({epochs.files_hash(rank, world) for rank in range(world)}) == world


def test_files_with_about_equal_shares_stay_near_their_blocks(rows):
    assert rows.evened(2) is rows
    assert rows.evened(1) is rows


def test_it_travels_in_few_bytes(rows):
    many = tuple(
        replace(rows.files[i % 2], uri=f"hdfs://h/part-{i:05}.parquet") for i in range(3000)
    )
    large = replace(rows, files=many).placed(named("ab"))
    text = pickle.dumps(large)
    assert len(text) < 60_000
    assert pickle.loads(text) == large


def test_a_share_stays_with_its_rank_and_is_known_by_its_hash(rows):
    here, there = rows.placed(named("ab")), rows.placed(named("ba"))
    assert re.search(r"for 2 ranks, 9\d % of it on their own hosts$", here.told(2))
    assert here.placed(named("xy")).told(2).endswith(" 0 % of it on their own hosts")
    common = set(ids(here.read(0, 2))) & set(ids(there.read(1, 2)))
    assert len(common) > 0.4 * ROWS
    hashes = [RowEpochs(each, 0).files_hash(0, 2) for each in (here, there)]
    assert hashes[0] != hashes[1]


class Ring:
    def __init__(self):
        self.entries = []

    def fds(self):
        return 1, 2

    def write(self, batch, timeout_s):
        self.entries.append(batch)
        return len(self.entries) < 30

    def flush(self, timeout_s):
        self.entries.append(None)
        return True

    def end(self):
        self.entries.append("end")

    def fail(self, reason):
        self.entries.append(reason)


def wait_for_readers(monkeypatch):
    """Has the threads of a feed run at once."""
    at_once = SimpleNamespace(Lock=lambda: __import__("contextlib").nullcontext())
    at_once.Thread = lambda target, args, name: SimpleNamespace(start=lambda: target(*args))
    monkeypatch.setattr("hearth.trainer.ring_feed.threading", at_once)


@pytest.mark.parametrize("at_home", [True, False])
def test_bytes_are_told_by_where_they_came_from(rows, monkeypatch, at_home):
    wait_for_readers(monkeypatch)
    ring = Ring()
    feed = FileFeed({"train": rows.placed(named("ab"))}, {"train": ring}, Place(0, at_home), 2)
    assert feed.read() == []
    assert set(feed.streams()["train"]) == {"ring_fd", "signal_fd", "spill_dir"}
    feed.start()
    assert ring.entries[-1] == "end"
    (told,) = feed.read()
    assert (told["near"] > 1000, told["far"] > 1000) == (at_home, not at_home)


def test_rows_that_are_not_kept_are_read_when_the_trainer_asks(rows, monkeypatch):
    wait_for_readers(monkeypatch)
    ring = Ring()
    feed = FileFeed({"train": RowEpochs(rows, 1)}, {"train": ring}, Place(0), 1)
    assert feed.streams()["train"]["files_hash"] > 0
    feed.start()
    assert ring.entries == []
    feed.start_epochs({"event": "rows", "stream": "train", "epoch": 2})
    assert None in ring.entries  # the mark of an epoch's end
    assert "end" not in ring.entries


def test_a_file_that_was_written_again_is_told_to_the_trainer(rows, monkeypatch):
    wait_for_readers(monkeypatch)
    path = rows.files[0].uri.removeprefix("file://")
    with open(path, "ab") as file:
        file.write(b"more")
    for kept in (True, False):
        ring = Ring()
        streams = {"train": rows if kept else RowEpochs(rows, 1)}
        feed = FileFeed(streams, {"train": ring}, Place(0), 1)
        feed.start() if kept else feed.start_epochs({"stream": "train", "epoch": 0})
        size = os.path.getsize(path)
        assert f"has {size} bytes instead of {size - 4}" in ring.entries[-1]


def test_tasks_take_ranks_whose_files_are_near():
    for hosts, wanted, ranks in (
        ("ba", "ab", [1, 0]),
        ("ab", "ab", [0, 1]),
        ("cba", "aba", [2, 1, 0]),
        ("cd", "ab", [0, 1]),
        ("aabc", "bacc", [1, 3, 0, 2]),
    ):
        assert ranks_of(hosts, named(wanted)) == ranks
    assert ranks_of(["10.0.0.1", "10.0.0.2"], [{"b", "10.0.0.2"}, {"a", "10.0.0.1"}]) == [1, 0]
