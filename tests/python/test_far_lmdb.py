"""An LMDB in HDFS: its records by ranges of keys, each by one rank, near its blocks."""

import itertools
import pickle
from dataclasses import replace

import pytest
from lmdb_files import datum, write_lmdb
from webhdfs_server import WebHdfs

from hearth import HearthError
from hearth.rows import far_lmdb
from hearth.rows.far_lmdb import FarLmdb
from hearth.rows.file_parts import Block
from hearth.rows.file_rows import DatabaseRows
from hearth.rows.row_epochs import RowEpochs

KEYS = [f"{number:08d}" for number in range(3000)]


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """Records of 50 to 9,000 bytes: in the leaves, and on pages of their own."""
    records = {
        key: datum(key.encode() * (5 if i % 40 else 1100), i % 7, (1, 1, 8))
        for i, key in enumerate(KEYS)
    }
    return write_lmdb(tmp_path_factory.mktemp("far") / "digits_lmdb", records)


@pytest.fixture
def hdfs(local):
    with WebHdfs() as server:
        with open(f"{local}/data.mdb", "rb") as file:
            server.files["/digits_lmdb/data.mdb"] = file.read()
        server.files["/digits_lmdb/lock.mdb"] = b"lock"
        yield server


@pytest.fixture(params=[True, False], ids=["cut", "divided"])
def find(request, monkeypatch, hdfs):
    """Finds it by its tree's upper levels alone, or by its records' numbers."""
    if request.param:
        monkeypatch.setattr(far_lmdb, "_PARTS_PER_RANK", 8)
    return lambda world: FarLmdb.find(None, f"{hdfs.uri}/digits_lmdb", world)


def ids(batches):
    return [name for batch in batches for name in batch.column("id").to_pylist()]


@pytest.mark.parametrize("world", [1, 2, 7])
def test_each_record_is_read_by_one_rank_in_key_order(find, local, world):
    rows = pickle.loads(pickle.dumps(find(world)))
    shares = [ids(rows.read(rank, world)) for rank in range(world)]
    assert list(itertools.chain.from_iterable(shares)) == KEYS
    assert max(map(len, shares)) < 1.5 * len(KEYS) / world
    whole = [row for batch in rows.read(0, world) for row in batch.to_pylist()]
    (near,) = (list(DatabaseRows(local, 1).read(0, 1)),)
    assert [row for batch in near for row in batch.to_pylist()][: len(whole)] == whole
    assert rows.told(world).endswith(f"an LMDB of 3000 records for {world} ranks")


def test_a_rank_fetches_its_own_pages_alone(find, hdfs):
    size = len(hdfs.files["/digits_lmdb/data.mdb"])
    for world in (1, 3):
        told = []
        rows = find(world).counting(lambda count, near, told=told: told.append(count))
        assert len(ids(rows.read(world - 1, world))) >= 3000 // world // 2
        assert 0.5 * size / world < sum(told) < 1.5 * size / world


@pytest.mark.parametrize("world", [1, 2])
def test_each_epoch_has_each_record_once(find, world):
    rows = find(world)
    epochs = [RowEpochs(rows, 3).read(rank, world, 2) for rank in range(world)]
    seen = [ids(itertools.chain(*(next(share) for share in epochs))) for _ in range(2)]
    assert [sorted(epoch) for epoch in seen] == [KEYS] * 2
    assert len({RowEpochs(rows, 3).files_hash(rank, world) for rank in range(world)}) == world


def test_ranks_get_what_lies_near_them(monkeypatch, hdfs):
    monkeypatch.setattr(far_lmdb, "_PARTS_PER_RANK", 8)
    rows = FarLmdb.find(None, f"{hdfs.uri}/digits_lmdb", 2)
    cuts = [rows.file.size * i // 4 for i in range(5)]
    blocks = [Block(*cuts[i : i + 2], frozenset("baba"[i])) for i in range(4)]
    rows = replace(rows, file=replace(rows.file, blocks=tuple(blocks)))
    placed = rows.placed([frozenset("a"), frozenset("b")])
    first, second = (ids(placed.read(rank, 2)) for rank in range(2))
    assert sorted(first + second) == KEYS
    assert second[:400] == KEYS[:400]  # rank 1 is on "b", which has the file's beginning
    assert not {*KEYS[1600:1900]} - {*second}  # and its third quarter
    assert int(placed.told(2).partition(" ranks, ")[2].split()[0]) > 80
    told = []
    counted = placed.counting(lambda count, near: told.append((near, count)))
    assert ids(counted.read(1, 2)) == second
    assert sum(count for near, count in told if near) > 0.8 * sum(count for _, count in told)


def test_what_is_no_lmdb_or_another_one_by_now_is_said(hdfs):
    rows = FarLmdb.find(None, f"{hdfs.uri}/digits_lmdb", 2)
    hdfs.files["/digits_lmdb/data.mdb"] += bytes(4096)
    with pytest.raises(ValueError, match=r"data\.mdb has \d+ bytes instead of \d+"):
        list(rows.read(0, 2))
    hdfs.files["/other/data.mdb"] = b"no database" * 1000
    hdfs.files["/two/a"] = hdfs.files["/two/b"] = b"x"
    for name, said in (
        ("other", "data.mdb is not an LMDB"),
        ("two", "two is no LMDB: it has no data.mdb"),
        ("gone", "there are no files in"),
    ):
        with pytest.raises(HearthError, match=said):
            FarLmdb.find(None, f"{hdfs.uri}/{name}", 2)


def test_damage_is_an_error_that_names_the_file(hdfs):
    rows = FarLmdb.find(None, f"{hdfs.uri}/digits_lmdb", 1)
    data = bytearray(hdfs.files["/digits_lmdb/data.mdb"])
    for page in range(2, len(data) // 4096):
        data[4096 * page + 10] = 0  # of no kind
    hdfs.files["/digits_lmdb/data.mdb"] = bytes(data)
    with pytest.raises(HearthError, match=r"webhdfs://\S+/data.mdb is damaged"):
        list(rows.read(0, 1))
