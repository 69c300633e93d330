"""ORC and SequenceFiles elsewhere, as Parquet: each row by one rank, and each epoch whole."""

import itertools
import pickle
import random
from dataclasses import replace

import pyarrow as pa
import pytest
from pyarrow import orc

from hearth.caffeonspark.tools import sequence_parts
from hearth.caffeonspark.tools.sequence_keys import pair_key, picture_key
from hearth.rows import sequence_pieces
from hearth.rows.far_formats import FAR_FORMATS
from hearth.rows.far_rows import FarRows
from hearth.rows.file_parts import Block, StoredFile
from hearth.rows.row_epochs import RowEpochs

ROWS = 4000


def value(number):
    return random.Random(number).randbytes(100)


def write_orc(path, numbers, compression="zstd"):
    table = pa.table(
        {
            "other": [0.5] * len(numbers),
            "id": [f"{i:08d}" for i in numbers],
            "data": [value(i) for i in numbers],
        }
    )
    orc.write_table(table, path, stripe_size=4096, batch_size=100, compression=compression)


def write_sequence(path, numbers):
    with open(path, "wb") as file:
        sequence_parts.write_records(
            file, ((picture_key(f"{i:08d}", "3", 1, 10, 10, False), value(i)) for i in numbers)
        )


@pytest.fixture(params=["orc", "sequence"])
def rows(request, tmp_path, monkeypatch):
    """A file on the host "a", one on "b"."""
    monkeypatch.setattr("hearth.rows.file_parts._LEAST_BYTES", 10_000)
    monkeypatch.setattr(sequence_pieces, "_PIECE_BYTES", 30_000)
    monkeypatch.setattr(sequence_parts, "_INTERVAL", 3000)
    write = {"orc": write_orc, "sequence": write_sequence}[request.param]
    for i, numbers in enumerate((range(2500), range(2500, ROWS))):
        write(tmp_path / f"part-{i}", numbers)
    (tmp_path / "part-2").touch()  # Spark leaves such files
    files = [
        StoredFile(path.as_uri(), path.stat().st_size, (Block(0, 1 << 30, frozenset({host})),))
        for path, host in zip(sorted(tmp_path.iterdir()), "abb", strict=True)
    ]
    columns = (("id", "name"), ("data", "data"))
    return FarRows(tmp_path.as_uri(), columns, tuple(files), kind=request.param)


def named(hosts):
    return [frozenset((host,)) for host in hosts]


def numbers_of(batches):
    found = []
    for batch in batches:
        assert batch.schema.names == ["name", "data"]
        names, data = (batch.column(name).to_pylist() for name in ("name", "data"))
        found += map(int, names)
        assert data == [value(int(name)) for name in names]
    return found


@pytest.mark.parametrize("world", [1, 2, 5])
def test_each_row_is_read_by_one_rank_near_its_block(rows, world):
    rows, near = rows.placed(named("babab"[:world])), []
    rows = rows.counting(lambda size, is_near: near.append((size, is_near)))
    shares = [numbers_of(rows.read(rank, world)) for rank in range(world)]
    assert sorted(itertools.chain.from_iterable(shares)) == list(range(ROWS))
    assert all(len(share) > ROWS / world / 3 for share in shares) or world == 5  # few stripes
    if world == 2:
        told = {place: sum(n for n, is_near in near if is_near is place) for place in (True, False)}
        assert told[True] > 2 * told[False]
        size = sum(file.size for file in rows.files)
        assert 0.7 * size < sum(told.values()) < 1.5 * size


@pytest.mark.parametrize("world", [1, 3])
def test_each_epoch_has_each_row_once_and_another_order(rows, world):
    epochs = [RowEpochs(rows, 3).read(rank, world, 4) for rank in range(world)]
    seen = [numbers_of(itertools.chain(*(next(share) for share in epochs))) for _ in range(2)]
    assert [sorted(epoch) for epoch in seen] == [list(range(ROWS))] * 2
    assert seen[0] != seen[1]
    again = [RowEpochs(rows, 3).read(rank, world, 5) for rank in range(world)]
    assert numbers_of(itertools.chain(*(next(share) for share in again))) == seen[1]


@pytest.mark.parametrize("world", [2, 3])
def test_small_files_are_shared_by_rows(rows, world, monkeypatch):
    monkeypatch.setattr("hearth.rows.file_parts._LEAST_BYTES", 1 << 20)
    even = pickle.loads(pickle.dumps(replace(rows, files=rows.files[1:]).evened(world)))
    assert even.told(world).endswith("in equal numbers of rows")
    shares = [numbers_of(even.read(rank, world)) for rank in range(world)]
    assert list(itertools.chain.from_iterable(shares)) == list(range(2500, ROWS))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert sorted(numbers_of(next(RowEpochs(even, 1).read(0, world, 0)))) == shares[0]


def test_large_sequence_files_are_not_counted(rows, monkeypatch):
    monkeypatch.setattr("hearth.rows.far_rows._UNCOUNTED_BYTES", 1000)
    monkeypatch.setattr(sequence_pieces.SequencePieces, "counted_pieces", None)
    assert rows.evened(2) is rows


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_orcs_stripes_are_found_whatever_packs_them(tmp_path, compression):
    write_orc(tmp_path / "a.orc", range(5000), compression)
    file = StoredFile((tmp_path / "a.orc").as_uri(), (tmp_path / "a.orc").stat().st_size)
    rows = FarRows(file.uri, (("id", "name"), ("data", "data")), (file,), kind="orc")
    pieces = rows.pieces(0, 1)
    assert len(pieces) > 3
    assert sum(piece.rows for piece in pieces) == 5000
    assert pieces[0].start == 3  # behind the letters ORC
    assert numbers_of(rows.read(0, 1)) == list(range(5000))


def test_a_file_of_another_kind_or_that_lacks_a_column_is_an_error(rows):
    lacking = replace(rows, columns=(("nothing", "x"),))
    with pytest.raises(ValueError, match=r"column 'nothing' is not in .*part-0, which has: "):
        list(lacking.read(0, 1))
    other = replace(rows, kind="orc" if rows.kind == "sequence" else "sequence")
    with pytest.raises((ValueError, OSError)):
        list(other.read(0, 1))
    with pytest.raises((ValueError, OSError)):
        FAR_FORMATS[other.kind].types(rows.files[0].uri)


def test_a_key_that_cannot_be_read_is_a_row_without_label_and_picture(tmp_path):
    keys = [pair_key("one", "7"), b"\0\1", picture_key("two", "3", 1, 2, 2, True)]
    with open(tmp_path / "a", "wb") as file:
        sequence_parts.write_records(file, [(key, b"data") for key in keys])
    file = StoredFile((tmp_path / "a").as_uri(), (tmp_path / "a").stat().st_size)
    names = ("id", "label", "channels", "encoded", "data")
    rows = FarRows(file.uri, tuple((n, n) for n in names), (file,), kind="sequence")
    (batch,) = rows.read(0, 1)
    assert [tuple(row.values()) for row in batch.to_pylist()] == [
        ("one", "7", None, True, b"data"),
        ("key 36de2269", None, None, None, None),
        ("two", "3", 1, True, b"data"),
    ]
