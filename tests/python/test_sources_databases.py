"""LMDBs and LevelDBs as sources: key ranges, each record once and in order."""

from __future__ import annotations

import itertools
import pickle
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lmdb_files import datum, write_lmdb
from stand_in_hdfs import StandInHdfs
from webhdfs_server import WebHdfs

from hearth import HearthError, data, native
from hearth.files.stored_files import Block
from hearth.sources import file_source, lmdb
from hearth.sources.file_source import FileSource
from hearth.sources.owners import owners
from hearth.sources.rank_rows import RankRows

ROWS = 3000


@pytest.fixture(scope="module")
def made_lmdb(tmp_path_factory):
    """Records of 50 to 9,000 bytes, stored in leaf pages and in overflow pages."""
    records = {
        f"{i:08d}": datum(f"{i:08d}".encode() * (5 if i % 40 else 1100), i % 7, (1, 1, 8))
        for i in range(ROWS)
    }
    return write_lmdb(tmp_path_factory.mktemp("source") / "digits_lmdb", records)


@pytest.fixture(scope="module")
def made_leveldb(tmp_path_factory):
    folder = tmp_path_factory.mktemp("leveldb")
    images = [b"%08d" % i for i in range(ROWS)]
    (folder / "images").write_bytes(
        np.array([0x803, ROWS, 2, 4], ">u4").tobytes() + b"".join(images)
    )
    labels = bytes(i % 7 for i in range(ROWS))
    (folder / "labels").write_bytes(np.array([0x801, ROWS], ">u4").tobytes() + labels)
    command = [str(native.program()), "convert_mnist_data", "images", "labels", "leveldb"]
    subprocess.run(
        [*command, "--backend", "leveldb"],
        cwd=folder,
        env=native.environment(),
        timeout=60,
        check=True,
        capture_output=True,
    )
    return str(folder / "leveldb")


@contextmanager
def server_of(kind, tmp_path, monkeypatch):
    """Yields a server of HDFS by WebHDFS or libhdfs, or None for this host's file system."""
    if "webhdfs" in kind:
        with WebHdfs() as server:
            yield server
    elif "libhdfs" in kind:
        (tmp_path / "hdfs").mkdir()
        yield StandInHdfs(tmp_path / "hdfs", tmp_path / "jars", monkeypatch)
    else:
        yield None


@pytest.fixture(params=["lmdb", "lmdb by webhdfs", "lmdb by libhdfs", "leveldb"])
def database(request, tmp_path, monkeypatch):
    """(the source's function, its URI, the server of its files)."""
    name = request.param.partition(" ")[0]
    folder = shutil.copytree(request.getfixturevalue(f"made_{name}"), tmp_path / name)
    with server_of(request.param, tmp_path, monkeypatch) as server:
        if server is None:
            yield getattr(data, name), str(folder), None
            return
        for file in folder.iterdir():
            server.files[f"/lmdb/{file.name}"] = file.read_bytes()
        yield data.lmdb, f"{server.uri}/lmdb", server


def rows(source, splits=None):
    splits = source.splits() if splits is None else splits
    batches = itertools.chain.from_iterable(map(source.read, splits))
    return pa.Table.from_batches(batches, source.schema()).to_pylist()


def first_number(row):
    return int(row["data"][:8])


def test_each_record_is_read_once_and_in_order(database):
    make, uri, _ = database
    source = pickle.loads(pickle.dumps(make(uri).pin()))
    found = rows(source)
    assert [first_number(row) for row in found] == list(range(ROWS))
    assert [row["label"] for row in found] == [i % 7 for i in range(ROWS)]
    assert 48 <= len(source.splits()) <= 400
    assert rows(source, source.splits()[-1:])[-1] == found[-1]
    only = make(uri, ["label", "id"]).pin()
    assert rows(only)[5] == {"label": 5, "id": found[5]["id"]}


@pytest.mark.parametrize("ranks", [2, 16])
def test_ranks_share_the_records(database, ranks):
    make, uri, _ = database
    source = make(uri).pin()
    splits = source.splits()
    shares = owners(splits, [], ranks)
    mine = [
        rows(source, [s for s, owner in zip(splits, shares, strict=True) if owner == rank])
        for rank in range(ranks)
    ]
    numbers = [first_number(row) for row in itertools.chain.from_iterable(mine)]
    assert numbers == list(range(ROWS))
    assert max(map(len, mine)) < 1.5 * min(map(len, mine))


def test_a_changed_or_missing_database_is_named(database):
    make, uri, server = database
    source = make(uri).pin()
    assert make(uri).pin().identity() == source.identity()
    if server is not None:
        server.files["/lmdb/data.mdb"] += b"more"
    else:
        (file,) = Path(uri).glob("data.mdb" if make is data.lmdb else "MANIFEST*")
        file.write_bytes(file.read_bytes() + b"more")
    with pytest.raises(ValueError, match=r"has \d+ bytes instead of \d+ .*start the run"):
        list(source.read(source.splits()[-1]))


@pytest.mark.parametrize("make", [data.lmdb, data.leveldb])
def test_a_folder_without_a_database_is_named(make, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"no database")
    with pytest.raises(ValueError, match=rf"{tmp_path} is not an? L"):
        make(str(tmp_path)).pin()
    with pytest.raises(FileNotFoundError, match="none does not exist"):
        make(str(tmp_path / "none")).pin()


def test_a_damaged_database_is_named(database):
    make, uri, server = database
    damage = b"\xff" * 16_384
    if server is not None:
        server.files["/lmdb/data.mdb"] = damage + server.files["/lmdb/data.mdb"][len(damage) :]
    else:
        (path,) = Path(uri).glob("data.mdb" if make is data.lmdb else "*.l[do][bg]")
        path.write_bytes(damage + path.read_bytes()[len(damage) :])
    with pytest.raises((ValueError, OSError, HearthError), match=r"data\.mdb|leveldb"):
        rows(make(uri).pin())


@pytest.mark.parametrize("kind", ["local", "webhdfs", "libhdfs"])
def test_an_empty_lmdb_has_no_split(tmp_path, kind, monkeypatch):
    folder = Path(write_lmdb(tmp_path / "empty", {}))
    with server_of(kind, tmp_path, monkeypatch) as server:
        uri = str(folder) if server is None else f"{server.uri}/empty"
        if server is not None:
            server.files["/empty/data.mdb"] = (folder / "data.mdb").read_bytes()
        assert data.lmdb(uri).pin().splits() == []


@pytest.mark.parametrize("make", [data.lmdb, data.leveldb])
def test_another_file_system_is_refused_with_a_remedy(make):
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/base/folder/data.mdb", b"x")
    with pytest.raises(ValueError, match=r"read in place.*convert it to Parquet"):
        make("memory://base/folder").pin()
    memory.rm("/base", recursive=True)


def test_an_lmdb_in_hdfs_is_cut_by_its_tree(database, monkeypatch):
    make, uri, server = database
    if server is None:
        pytest.skip("those of this host are cut by their records")
    monkeypatch.setattr(lmdb, "LEAST_SPLITS", 20)
    source = make(uri).pin()
    assert [split.rows for split in source.splits()] == [None] * len(source.splits())
    assert [first_number(row) for row in rows(source)] == list(range(ROWS))


def ids(batches):
    return [first_number(row) for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("ranks", [1, 3])
def test_ranks_read_a_database_in_place_and_again_in_each_epoch(database, ranks):
    make, uri, server = database
    source = make(uri).pin()
    in_place = RankRows(source.in_place())
    binary = pa.binary() if server else pa.binary_view()
    assert in_place.source.schema().field("data").type == binary
    shares = [ids(in_place.read(rank, ranks)) for rank in range(ranks)]
    assert list(itertools.chain.from_iterable(shares)) == list(range(ROWS))
    again = [RankRows(source, 3).epochs(rank, ranks, 2) for rank in range(ranks)]
    seen = [[value for each in again for value in ids(next(each))] for _ in range(2)]
    assert [sorted(each) for each in seen] == [list(range(ROWS))] * 2
    assert seen[0] != seen[1]


def test_ranks_fetch_the_pages_of_an_lmdb_that_are_local_to_them(database, monkeypatch):
    make, uri, server = database
    if server is None:
        pytest.skip("no host is nearer than another")
    monkeypatch.setattr(lmdb, "LEAST_SPLITS", 20)
    monkeypatch.setattr("hearth.sources.cut_splits.LEAST_SPLITS", 20)
    real, size = file_source.list_files, len(server.files["/lmdb/data.mdb"])
    blocks = tuple(
        Block(size * i // 4, size * (i + 1) // 4, frozenset("baba"[i])) for i in range(4)
    )
    monkeypatch.setattr(
        file_source,
        "list_files",
        lambda *args, **more: [replace(file, blocks=blocks) for file in real(*args, **more)],
    )
    rows = RankRows(make(uri).pin()).placed([frozenset("a"), frozenset("b")])
    counts = []
    first, second = (ids(rows.read(rank, 2, lambda *both: counts.append(both))) for rank in (0, 1))
    assert sorted(first + second) == list(range(ROWS))
    assert {*range(400)} <= {*second}  # rank 1 is on host b, which has the file's beginning
    assert {*range(1600, 1900)} <= {*second}  # and the third quarter
    assert int(rows.placement(2).rpartition(" ranks, ")[2].split()[0]) > 80
    total = sum(count for count, _ in counts)
    assert 0.5 * size < total < 1.5 * size
    assert sum(count for count, local in counts if local) > 0.8 * total


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranges_with_gaps_are_not_read_as_one(database, ranks, monkeypatch):
    make, uri, _ = database
    hosts = [frozenset("abc"[rank]) for rank in range(ranks)]
    source = make(uri).pin()
    scattered = [
        replace(split, hosts=hosts[i * 7 % 5 % ranks]) for i, split in enumerate(source.splits())
    ]
    monkeypatch.setattr(FileSource, "splits", lambda self: scattered)
    rows = RankRows(source, hosts=tuple(hosts))
    shares = [ids(rows.read(rank, ranks)) for rank in range(ranks)]
    assert sorted(itertools.chain.from_iterable(shares)) == list(range(ROWS))
    assert shares[0] != list(range(len(shares[0])))


def test_damage_of_an_lmdb_in_hdfs_is_named(database):
    make, uri, server = database
    if server is None:
        pytest.skip("those of this host are mapped")
    source = make(uri).pin()
    content = bytearray(server.files["/lmdb/data.mdb"])
    for page in range(2, len(content) // 4096):
        content[4096 * page + 10] = 0  # an invalid page type
    server.files["/lmdb/data.mdb"] = bytes(content)
    with pytest.raises(HearthError, match=r"hdfs://\S+/data.mdb is damaged"):
        rows(source)
