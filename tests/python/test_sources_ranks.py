"""Ranks read their shares of files once or in each epoch, and prefer local blocks."""

import contextlib
import itertools
import os
import pickle
import re
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from table_files import ROWS, TABLE, write_parquet

from hearth.caffe_jobs.ring_feed import FileFeed, TaskRank, ranks_of
from hearth.caffeonspark.tools import sequence_parts
from hearth.caffeonspark.tools.sequence_keys import datum_key
from hearth.files.stored_files import Block
from hearth.sources import file_source
from hearth.sources.file_source import FileSource
from hearth.sources.orc import OrcFormat
from hearth.sources.parquet import ParquetFormat
from hearth.sources.rank_rows import RankRows, epoch_order
from hearth.sources.sequence_file import SequenceFileFormat


def write_orc(folder):
    for i in range(2):
        table = TABLE.slice(i * 500, 500)
        orc.write_table(table, folder / f"part-{i}", stripe_size=1024, batch_size=50)


def write_sequence(folder):
    for i in range(2):
        ids = range(i * 500, i * 500 + 500)
        records = [(datum_key(str(id_), "3", 1, 1, 2, False), bytes(200)) for id_ in ids]
        with open(folder / f"part-{i}", "wb") as file:
            sequence_parts.write_records(file, records)


KINDS = {
    "parquet": (ParquetFormat(), write_parquet),
    "orc": (OrcFormat(), write_orc),
    "sequence": (SequenceFileFormat(), write_sequence),
}


def pinned(folder, kind="parquet", seed=None, hosts="ab"):
    """The rows of a folder, read by fsspec; its files are on `hosts`, round-robin."""
    real = file_source.list_files
    block_hosts = itertools.cycle(hosts)

    def listed(*args, **more):
        return [
            replace(file, blocks=(Block(0, file.size, frozenset(next(block_hosts))),))
            for file in real(*args, **more)
        ]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_source, "list_files", listed)
        source = FileSource(KINDS[kind][0], f"local://{folder}", (("id", "number"),)).pin()
    return RankRows(source, seed)


@pytest.fixture(params=KINDS)
def kind(request, tmp_path, monkeypatch):
    monkeypatch.setattr(sequence_parts, "_INTERVAL", 2000)
    KINDS[request.param][1](tmp_path)
    return request.param


@pytest.fixture
def rows(tmp_path):
    write_parquet(tmp_path)
    return pinned(tmp_path)


def named(hosts):
    return [frozenset((host,)) for host in hosts]


def ids(batches):
    return [int(value) for batch in batches for value in batch.column("number").to_pylist()]


def epoch(rows, rank, world, number=0):
    return ids(next(rows.epochs(rank, world, number)))


@pytest.mark.parametrize("world", [1, 2, 5])
@pytest.mark.parametrize("hosts", [(), ("b", "a", "c", "a", "b")])
def test_each_row_is_read_by_one_rank(kind, tmp_path, world, hosts):
    rows = pickle.loads(pickle.dumps(pinned(tmp_path, kind))).placed(named(hosts[:world]))
    shares = [ids(rows.read(rank, world)) for rank in range(world)]
    assert sorted(itertools.chain.from_iterable(shares)) == list(range(ROWS))
    assert max(map(len, shares)) < 1.3 * ROWS / world
    if not hosts:
        assert list(itertools.chain.from_iterable(shares)) == list(range(ROWS))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_ranks_read_local_files(kind, tmp_path):
    rows = pinned(tmp_path, kind).placed(named("ba"))
    first, second = (ids(rows.read(rank, 2)) for rank in range(2))
    assert len(set(first) & set(range(600, ROWS))) > 0.7 * len(first)
    assert len(set(second) & set(range(500))) > 0.7 * len(second)
    assert re.search(r"for 2 ranks.*, (\d\d|100) % of it on their own hosts$", rows.placement(2))
    remote = rows.placed(named("xy")).placement(2)
    assert remote.endswith("in equal numbers of rows, 0 % of it on their own hosts")
    counts = {True: 0, False: 0}

    def count(size, is_local):
        counts[is_local] += size

    assert ids(rows.read(0, 2, count)) == first
    total = sum(file.size for file in rows.source.pinned.files)
    assert counts[True] > 2 * counts[False]
    assert 0.3 * total / 2 < sum(counts.values()) < 2 * total / 2


@pytest.mark.parametrize("world", [1, 3])
def test_each_epoch_has_each_row_once_and_another_order(kind, tmp_path, world):
    rows = pinned(tmp_path, kind, seed=3).placed(named("bax"[:world]))
    epochs = [
        [value for rank in range(world) for value in epoch(rows, rank, world, number)]
        for number in (4, 5)
    ]
    assert [sorted(each) for each in epochs] == [list(range(ROWS))] * 2
    assert epochs[0] != epochs[1]
    going = [rows.epochs(rank, world, 4) for rank in range(world)]
    for wanted in epochs:
        assert [value for each in going for value in ids(next(each))] == wanted


def local(folder, seed=None):
    return RankRows(FileSource(ParquetFormat(), str(folder), (("id", "number"),)), seed).pin()


def write_small_groups(folder):
    """Writes 1,000 rows in five files with row groups of 30."""
    for first in range(0, 1000, 200):
        table = pa.table({"id": list(range(first, first + 200))})
        pq.write_table(table, folder / f"part-{first:03}.parquet", row_group_size=30)


def test_units_are_row_groups_whose_rows_stay_together(tmp_path):
    write_small_groups(tmp_path)
    found = epoch(local(tmp_path, seed=7), 0, 1)
    jumps = sum(b != a + 1 for a, b in itertools.pairwise(found))
    assert 20 < jumps < 35  # five files with seven groups each
    assert epoch(local(tmp_path, seed=8), 0, 1) != found


def test_a_large_row_group_is_one_unit_of_each_rank(tmp_path):
    pq.write_table(pa.table({"id": range(1000)}), tmp_path / "a.parquet")
    rows = local(tmp_path, seed=7)
    assert [epoch(rows, rank, 2) for rank in range(2)] == [list(range(500)), list(range(500, 1000))]


def test_the_order_is_the_same_on_every_machine():
    assert epoch_order(8, "7 0 0") == [2, 6, 0, 3, 1, 5, 4, 7]


def test_other_files_and_other_shares_have_another_hash(tmp_path):
    write_small_groups(tmp_path)
    before = local(tmp_path, seed=7).files_hash(0, 2)
    assert before == local(tmp_path, seed=7).files_hash(0, 2)
    assert before != local(tmp_path, seed=7).files_hash(1, 2)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "part-999.parquet")
    assert before != local(tmp_path, seed=7).files_hash(0, 2)
    assert 0 <= before < 1 << 63
    rows = pinned(tmp_path, seed=7)
    assert rows.placed(named("ab")).files_hash(0, 2) != rows.placed(named("ba")).files_hash(0, 2)


def test_a_file_that_changes_between_epochs_is_an_error(tmp_path):
    write_small_groups(tmp_path)
    epochs = local(tmp_path, seed=7).epochs(0, 1, 0)
    assert len(list(next(epochs)))
    with open(tmp_path / "part-400.parquet", "ab") as file:
        file.write(b"more")
    with pytest.raises(ValueError, match=r"part-400.parquet has \d+ bytes instead of"):
        list(next(epochs))
    os.remove(tmp_path / "part-400.parquet")
    with pytest.raises(ValueError, match="is missing"):
        list(next(epochs))


def test_local_files_have_no_placement(tmp_path):
    write_small_groups(tmp_path)
    assert local(tmp_path).placement(2) == ""


class Ring:
    def __init__(self):
        self.entries = []

    def fds(self):
        return 1, 2

    def write(self, batch, timeout_s):
        self.entries.append(batch)
        return len(self.entries) < 300

    def flush(self, timeout_s):
        self.entries.append(None)
        return len(self.entries) < 30

    def end(self):
        self.entries.append("end")

    def fail(self, reason):
        self.entries.append(reason)


def wait_for_readers(monkeypatch):
    """Makes a feed's threads run synchronously when they are started."""
    at_once = SimpleNamespace(Lock=contextlib.nullcontext)
    at_once.Thread = lambda target, args, name: SimpleNamespace(start=lambda: target(*args))
    monkeypatch.setattr("hearth.caffe_jobs.ring_feed.threading", at_once)


@pytest.mark.parametrize("is_local", [True, False])
def test_local_and_remote_bytes_are_reported(rows, monkeypatch, is_local):
    wait_for_readers(monkeypatch)
    ring = Ring()
    feed = FileFeed({"train": rows.placed(named("ab"))}, {"train": ring}, TaskRank(0, is_local), 2)
    assert feed.read() == []
    assert set(feed.streams()["train"]) == {"ring_fd", "signal_fd", "spill_dir"}
    feed.start()
    assert ring.entries[-1] == "end"
    (report,) = feed.read()
    assert (report["local"] > 1000, report["remote"] > 1000) == (is_local, not is_local)


def test_rows_that_are_not_kept_are_read_when_the_trainer_asks(rows, monkeypatch):
    wait_for_readers(monkeypatch)
    ring = Ring()
    feed = FileFeed({"train": replace(rows, seed=1)}, {"train": ring}, TaskRank(0), 1)
    assert feed.streams()["train"]["files_hash"] > 0
    feed.start()
    assert ring.entries == []
    feed.start_epochs({"event": "rows", "stream": "train", "epoch": 2})
    assert None in ring.entries  # marks the end of an epoch
    assert "end" not in ring.entries


def test_a_modified_file_is_reported_to_the_trainer(rows, tmp_path, monkeypatch):
    wait_for_readers(monkeypatch)
    path = min(tmp_path.iterdir())
    with open(path, "ab") as file:
        file.write(b"more")
    for seed in (None, 1):
        ring = Ring()
        feed = FileFeed({"train": replace(rows, seed=seed)}, {"train": ring}, TaskRank(0), 1)
        feed.start() if seed is None else feed.start_epochs({"stream": "train", "epoch": 0})
        size = path.stat().st_size
        assert f"has {size} bytes instead of {size - 4}" in ring.entries[-1]


def test_tasks_take_ranks_whose_files_are_local():
    for hosts, wanted, ranks in (
        ("ba", "ab", [1, 0]),
        ("ab", "ab", [0, 1]),
        ("cba", "aba", [2, 1, 0]),
        ("cd", "ab", [0, 1]),
        ("aabc", "bacc", [1, 3, 0, 2]),
    ):
        assert ranks_of(hosts, named(wanted)) == ranks
    assert ranks_of(["10.0.0.1", "10.0.0.2"], [{"b", "10.0.0.2"}, {"a", "10.0.0.1"}]) == [1, 0]
