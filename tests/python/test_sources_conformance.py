"""Sources of every format in every file system: each row once, pinned, damaged files named."""

from __future__ import annotations

import itertools
import os
import pickle
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hearth.native._core import TfRecordWriter
from object_store import new_folder, object_stores, put_files
from pyarrow import orc
from stand_in_hdfs import StandInHdfs
from table_logs import write_delta_log, write_iceberg_log
from webhdfs_server import WebHdfs

from hearth import HearthError, data
from hearth.caffeonspark.tools import sequence_parts
from hearth.caffeonspark.tools.sequence_keys import pair_key
from hearth.sources.owners import owners

ROWS = 3000
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "x": pa.array([[i, i + 0.5] for i in range(ROWS)], pa.list_(pa.float32())),
    }
)


def write_parquet(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path, row_group_size=700)


def write_arrow(path: Path, table: pa.Table) -> None:
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=700)


def write_orc(path: Path, table: pa.Table) -> None:
    orc.write_table(table, path, stripe_size=4096, batch_size=100)


def write_sequence(path: Path, table: pa.Table) -> None:
    rows = table.to_pylist()
    with open(path, "wb") as file:
        sequence_parts.write_records(
            file, [(pair_key(str(row["id"]), "7"), repr(row["x"]).encode()) for row in rows]
        )


def write_tfrecord(path: Path, table: pa.Table) -> None:
    writer = TfRecordWriter(str(path))
    for batch in table.to_batches():
        writer.write(batch)
    writer.finish()


@dataclass(frozen=True)
class Kind:
    make: Callable
    write: Callable[[Path, pa.Table], None]
    typed: bool = True  # whether a file without rows still has a schema
    summed: bool = False  # whether checksums cover all bytes
    columns: tuple[str, ...] = ("id", "x")
    log: Callable[[Path, str], None] | None = None  # writes a table's log: (folder with files, URI)


KINDS = {
    "parquet": Kind(data.parquet, write_parquet),
    "arrow": Kind(data.arrow, write_arrow),
    "delta": Kind(data.delta, write_parquet, log=write_delta_log),
    "iceberg": Kind(data.iceberg, write_parquet, log=write_iceberg_log),
    "orc": Kind(data.orc, write_orc),
    "tfrecord": Kind(data.tfrecord, write_tfrecord, typed=False, summed=True),
    "sequence": Kind(data.sequence_file, write_sequence, columns=("id", "data")),
}


class Place:
    """A folder in a file system; tests write files locally, and put() copies them there."""

    def __init__(self, local: Path):
        self.local, self.uri = local, str(local)

    def put(self) -> None:
        """Makes the folder equal to the local one."""

    def contents(self) -> list[tuple[str, bytes]]:
        """(name in the folder, content) of the local files."""
        files = [path for path in self.local.rglob("*") if path.is_file()]
        return [(str(path.relative_to(self.local)), path.read_bytes()) for path in files]


class Memory(Place):
    def __init__(self, local: Path):
        super().__init__(local)
        self.uri = "memory://box/folder"

    def put(self) -> None:
        import fsspec

        memory = fsspec.filesystem("memory")
        memory.store.clear()
        memory.pseudo_dirs[:] = [""]
        for name, content in self.contents():
            memory.pipe(f"/box/folder/{name}", content)


class Store(Place):
    def __init__(self, local: Path):
        super().__init__(local)
        self.uri = new_folder() + "/folder"

    def put(self) -> None:
        put_files(self.uri, self.contents())


class Hdfs(Place):
    def __init__(self, local: Path, server: WebHdfs):
        super().__init__(local)
        self.server, self.uri = server, f"{server.uri}/folder"

    def put(self) -> None:
        self.server.files.clear()
        for name, content in self.contents():
            self.server.files[f"/folder/{name}"] = content


@pytest.fixture(params=["local", "memory", "webhdfs", "libhdfs", *object_stores()])
def place(request, tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    if request.param == "webhdfs":
        with WebHdfs() as server:
            yield Hdfs(folder, server)
        return
    if request.param == "libhdfs":
        place = Place(folder)
        place.uri = f"{StandInHdfs(tmp_path, tmp_path / 'jars', monkeypatch).uri}/folder"
        yield place
        return
    kinds = {"local": Place, "memory": Memory, "store": Store}
    yield kinds[request.param](folder)


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def put(place: Place, kind: Kind, *tables: pa.Table) -> None:
    shutil.rmtree(place.local)
    place.local.mkdir()
    for i, table in enumerate(tables):
        kind.write(place.local / f"part-{i}", table)
    if kind.log is not None:
        kind.log(place.local, place.uri)
    (place.local / "_SUCCESS").touch()
    place.put()


def ids(batches) -> list[int]:
    return [int(value) for batch in batches for value in batch.column("id").to_pylist()]


def every(source, splits=None) -> list[int]:
    splits = source.splits() if splits is None else splits
    return ids(itertools.chain.from_iterable(map(source.read, splits)))


def test_all_rows_are_read_in_order_and_repeatedly(place, kind):
    put(place, kind, TABLE.slice(0, 2000), TABLE.slice(2000))
    wanted = list(reversed(kind.columns))
    source = kind.make(place.uri, wanted).pin()
    assert source.schema().names == wanted
    assert every(source) == list(range(ROWS))
    found = pa.Table.from_batches(
        itertools.chain.from_iterable(map(source.read, source.splits())), source.schema()
    )
    values = TABLE.column("x").to_pylist()
    if "x" not in wanted:
        values = [repr(value).encode() for value in values]
    assert found.column(wanted[0]).to_pylist() == values
    backwards = [list(source.read(split)) for split in reversed(source.splits())]
    forwards = [list(source.read(split)) for split in source.splits()]
    assert backwards == forwards[::-1]  # the order of reading does not change batches


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_dictionary_encoded_columns_are_decoded(tmp_path, kind):
    """pandas writes categories as dictionary-encoded columns."""
    texts, numbers = ["a", None, "b", "a"], [7, 7, 300, 7]
    values, rows = pa.array(texts), pa.ListArray.from_arrays([0, 1, 3, 3, 4], pa.array(texts))
    table = pa.table({"text": values, "number": numbers, "texts": rows})
    coded = pa.table(
        {
            "text": values.dictionary_encode(),
            "number": pa.array(numbers).dictionary_encode(),
            "texts": pa.ListArray.from_arrays(rows.offsets, values.dictionary_encode()),
        }
    )
    KINDS[kind].write(tmp_path / "part-0", coded)
    source = KINDS[kind].make(str(tmp_path)).pin()
    batches = itertools.chain.from_iterable(map(source.read, source.splits()))
    assert source.schema() == table.schema
    assert pa.Table.from_batches(batches, source.schema()) == table


@pytest.mark.parametrize("ranks", [1, 3, 16])
def test_ranks_share_one_small_file(place, kind, ranks):
    put(place, kind, TABLE)
    source = pickle.loads(pickle.dumps(kind.make(place.uri).pin()))
    splits = source.splits()
    assert [split.number for split in splits] == list(range(len(splits)))
    assert 48 <= len(splits) <= 300
    assert sum(split.rows for split in splits) == ROWS
    shares = owners(splits, [], ranks)
    rows = [
        every(source, [s for s, owner in zip(splits, shares, strict=True) if owner == rank])
        for rank in range(ranks)
    ]
    assert sorted(itertools.chain.from_iterable(rows)) == list(range(ROWS))
    assert max(map(len, rows)) < 1.2 * min(map(len, rows))


def test_files_without_rows_are_a_source_without_splits(place, kind):
    if kind.typed:
        put(place, kind, TABLE.slice(0, 0), TABLE.slice(0, 0))
        source = kind.make(place.uri).pin()
        assert source.splits() == []
        assert set(kind.columns) <= set(source.schema().names)
    put(place, kind, TABLE.slice(0, 0), TABLE.slice(0, 10), TABLE.slice(0, 0), TABLE.slice(10, 5))
    source = kind.make(place.uri).pin()
    assert every(source) == list(range(15))


def test_a_folder_without_files_is_named(place, kind):
    place.put()
    with pytest.raises((OSError, HearthError), match="folder"):
        kind.make(place.uri).pin()


def test_a_changed_or_missing_file_is_named(place, kind):
    put(place, kind, TABLE.slice(0, 2000), TABLE.slice(2000))
    source = kind.make(place.uri).pin()
    first, last = source.splits()[0], source.splits()[-1]
    before = source.identity()
    with open(place.local / "part-1", "ab") as file:
        file.write(b"more")
    place.put()
    assert ids(source.read(first))[0] == 0  # this split's file is unchanged
    with pytest.raises(ValueError, match=r"part-1 has \d+ bytes instead of \d+ .*start the run"):
        list(source.read(last))
    (place.local / "part-1").unlink()
    place.put()
    with pytest.raises(ValueError, match="part-1 is missing"):
        list(source.read(last))
    put(place, kind, TABLE.slice(0, 2000), TABLE.slice(1999))
    assert kind.make(place.uri).pin().identity() != before


@pytest.mark.parametrize("where", ["cut off", "other", "first half", "middle"])
def test_a_damaged_file_is_named(place, kind, where):
    put(place, kind, TABLE.slice(0, 2000), TABLE.slice(2000))
    path = place.local / "part-1"
    content = path.read_bytes()
    half = len(content) // 2
    damaged = {
        "cut off": content[:-9],
        "other": os.urandom(len(content)),
        "first half": os.urandom(half) + content[half:],
        "middle": content[: half // 2] + bytes(half) + content[half // 2 + half :],
    }
    path.write_bytes(damaged[where])
    place.put()
    try:
        rows = every(kind.make(place.uri).pin())
    except (ValueError, OSError, HearthError) as error:
        assert "part-1" in str(error)
        assert "\n" not in str(error)
    else:  # the damage hit numbers that have no checksum
        assert where in ("first half", "middle")
        assert not kind.summed
        assert len(rows) == ROWS or kind.make is data.sequence_file


def test_a_missing_column_is_named_with_existing_ones(place, kind):
    put(place, kind, TABLE)
    with pytest.raises(ValueError, match=r"column 'image' is not in .*, which has: id, "):
        kind.make(place.uri, ["image"]).pin()


def test_a_source_is_used_after_its_pin_alone(kind):
    source = kind.make("/nowhere")
    for use in (source.splits, source.schema, source.identity):
        with pytest.raises(ValueError, match="is not pinned yet"):
            use()
    with pytest.raises(FileNotFoundError, match="/nowhere does not exist"):
        source.pin()
