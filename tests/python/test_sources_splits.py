"""Splits of sources, and their assignment to ranks."""

from __future__ import annotations

import dataclasses
import os
import pickle
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hearth.native._core import TfRecordWriter
from pyarrow import orc

from hearth import HearthError, data
from hearth.files.stored_files import Block, StoredFile
from hearth.sources import tfrecord
from hearth.sources.cut_splits import JOINED_BYTES, cut_splits
from hearth.sources.format import Unit
from hearth.sources.owners import joined, owners, shares, units
from hearth.sources.source import Split

MIB = 1 << 20


def cut(sizes, rows=100, hosts=()):
    """Splits of files with one unit each; file i is on host i of `hosts`, if any."""
    files = [
        StoredFile(f"f{i}", size, (Block(0, size, frozenset(hosts[i])),) if hosts else ())
        for i, size in enumerate(sizes)
    ]
    return cut_splits(files, [[Unit(0, 0, size, rows)] for size in sizes])


@pytest.mark.parametrize("count", [1, 2, 7, 100, 1000, 20_000])
@pytest.mark.parametrize("size", [1000, 100 * MIB])
def test_any_layout_has_a_bounded_number_of_splits_with_all_rows(count, size):
    splits = cut([size] * count, rows=500)
    assert 48 <= len(splits) <= 5000
    assert sum(split.rows for split in splits) == 500 * count
    pieces = [piece for split in splits for piece in split.pieces]
    assert sum((p.rows if p.end is None else p.end) - p.begin for p in pieces) == 500 * count
    assert [split.number for split in splits] == list(range(len(splits)))


def test_few_rows_are_a_split_each_and_unknown_ones_are_not_cut():
    assert [split.rows for split in cut([1000], rows=5)] == [1] * 5
    assert [split.rows for split in cut([1000], rows=None)] == [None]
    assert cut([1000], rows=0) == ()


def test_small_files_are_joined_within_their_host():
    sizes, hosts = [MIB] * 12_000, [("a", "x"), ("b", "y"), ("c", "z")]
    splits = cut(sizes, hosts=[hosts[i // 4000] for i in range(12_000)])
    assert all(2 * MIB <= split.bytes <= 1.25 * JOINED_BYTES for split in splits)
    assert [split.hosts for split in splits].count(frozenset()) == 0
    scattered = cut(sizes, hosts=[hosts[i % 3] for i in range(12_000)])
    assert len(scattered) <= 5000


def splits_of(loads, hosts=None, counted=True):
    return [
        Split(i, load, load if counted else None, frozenset(hosts[i] if hosts else ()))
        for i, load in enumerate(loads)
    ]


@pytest.mark.parametrize("ranks", [1, 2, 5, 16])
@pytest.mark.parametrize("counted", [True, False])
def test_ranks_get_contiguous_equal_shares_and_at_least_one_split(ranks, counted):
    random.seed(ranks)
    for _ in range(30):
        loads = [random.choice([1, 10, 1000]) for _ in range(random.randint(ranks, 300))]
        found = owners(splits_of(loads, counted=counted), [], ranks)
        assert found == sorted(found)
        assert set(found) == set(range(ranks))
        shares = [sum(x for x, o in zip(loads, found, strict=True) if o == r) for r in range(ranks)]
        if len(loads) > 4 * ranks:
            assert max(shares) <= sum(loads) / ranks + 2 * max(loads)
    assert owners([], [], ranks) == []


def test_splits_go_to_the_ranks_of_their_hosts_in_equal_shares():
    hosts = [frozenset({"a", "10.0.0.1"}), frozenset({"b"}), frozenset({"c"})]
    splits = splits_of([10] * 30, [("10.0.0.1", "q")] * 10 + [("b",)] * 10 + [("c", "a")] * 10)
    found = owners(splits, hosts, 3)
    assert found == [0] * 10 + [1] * 10 + [2] * 10
    one_host = owners(splits_of([10] * 30, [("a",)] * 30), hosts, 3)
    assert [one_host.count(rank) for rank in range(3)] == [10, 10, 10]
    with pytest.raises(ValueError, match="3 ranks on 2 hosts"):
        owners(splits, hosts[:2], 3)


@pytest.mark.parametrize("ranks", [1, 2, 3, 7, 300])
def test_shares_of_counted_rows_are_contiguous_and_differ_by_a_row(tmp_path, ranks):
    for i in range(3):
        ids = range(i * 5000, i * 5000 + 5000)
        pq.write_table(pa.table({"id": ids}), tmp_path / f"{i}.parquet")
    source = data.parquet(str(tmp_path)).pin()
    for hosts in ([], [frozenset({"a"})] * ranks):  # no rank is nearer to the data than another
        rows = [
            [value for s in joined(share) for b in source.read(s) for value in b["id"].to_pylist()]
            for share in shares(source.splits(), hosts, ranks)
        ]
        assert [value for part in rows for value in part] == list(range(15_000))
        assert max(map(len, rows)) - min(map(len, rows)) <= 1


def test_joined_splits_have_one_range_for_each_unit():
    splits = cut([1000, 1000], hosts=["a", "b"])
    (first, second) = joined(splits, frozenset("b"))
    assert [(piece.file, piece.begin, piece.end) for piece in first.pieces] == [(0, 0, 100)]
    assert second.pieces[0].file == 1
    assert (first.rows, second.rows) == (100, 100)
    both = joined(splits)
    assert [[(s.rows, s.pieces[0].file) for s in units(split)] for split in both] == [
        [(100, 0), (100, 1)]
    ]


def test_units_that_are_read_with_gaps_are_decoded_once(tmp_path, monkeypatch):
    pq.write_table(pa.table({"id": range(100_000)}), tmp_path / "a.parquet")
    source, opened = data.parquet(str(tmp_path)).pin(), []
    real = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda *args: opened.append(args) or real(*args)
    )
    every = source.splits()[::2]
    rows = [value for split in every for b in source.read(split) for value in b["id"].to_pylist()]
    assert len(rows) == sum(split.rows for split in every)
    assert len(opened) == 1


def write_records(path, values):
    writer = TfRecordWriter(str(path))
    for value in values:
        writer.write(pa.record_batch({"id": [len(value)], "data": [value]}))
    writer.finish()


def read(source):
    return [
        value
        for split in source.splits()
        for batch in source.read(split)
        for value in batch.column("data").to_pylist()
    ]


def test_large_tfrecord_files_are_cut_at_records_without_a_scan(tmp_path, monkeypatch):
    """The values have many zeros, so many positions look like the start of a record."""
    monkeypatch.setattr(tfrecord, "_SCANNED_BYTES", 1000)
    monkeypatch.setattr(tfrecord, "_scanned", None)
    random.seed(3)
    values = [bytes(random.choice(b"\0\0\0\1\xff") for _ in range(n % 700)) for n in range(3000)]
    write_records(tmp_path / "a", values)
    source = data.tfrecord(str(tmp_path / "a")).pin()
    assert 100 < len(source.splits()) < 300
    assert read(source) == values


def test_a_file_whose_records_hold_records_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(tfrecord, "_SCANNED_BYTES", 1000)
    write_records(tmp_path / "inner", [b"x" * 50] * 1000)
    inner = (tmp_path / "inner").read_bytes()
    write_records(tmp_path / "outer", [inner] * 3)
    source = data.tfrecord(str(tmp_path / "outer")).pin()
    with pytest.raises(ValueError, match=r"outer.* truncated.* Records that contain TFRecords"):
        read(source)


@pytest.mark.parametrize("compression", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_orc_stripes_are_found_under_any_compression(tmp_path, compression):
    path = tmp_path / "a.orc"
    values = [random.Random(i).randbytes(100) for i in range(5000)]
    orc.write_table(
        pa.table({"data": values}), path, stripe_size=4096, batch_size=100, compression=compression
    )
    source = data.orc(str(path)).pin()
    pieces = {piece.key: piece for split in source.splits() for piece in split.pieces}
    assert len(pieces) > 3
    assert sum(piece.rows for piece in pieces.values()) == 5000
    assert read(source) == values


def test_a_file_of_another_format_is_an_error(tmp_path):
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a")
    for make in (data.orc, data.arrow, data.tfrecord, data.sequence_file):
        with pytest.raises((ValueError, OSError, HearthError), match=rf"{tmp_path}/a"):
            make(str(tmp_path)).pin()


def test_a_gzip_file_is_one_split(tmp_path):
    writer = TfRecordWriter(str(tmp_path / "a"), gzip=True)
    writer.write(pa.record_batch({"data": [b"%d" % i for i in range(10_000)]}))
    writer.finish()
    source = data.tfrecord(str(tmp_path)).pin()
    assert [split.rows for split in source.splits()] == [None]
    assert read(source) == [b"%d" % i for i in range(10_000)]


@pytest.mark.parametrize("scheme", ["", "memory://box"])
def test_columns_in_the_names_of_folders(scheme, tmp_path):
    import fsspec

    root = f"{scheme}{tmp_path}/day=0/table"
    files = fsspec.filesystem("memory" if scheme else "file")
    for i, day in enumerate(("1", "02", "-3", "__HIVE_DEFAULT_PARTITION__")):
        for name in ("a%20b", "7"):
            folder = f"{root}/day={day}/name={name}".removeprefix("memory:/")
            files.makedirs(folder, exist_ok=True)
            with files.open(f"{folder}/part.parquet", "wb") as file:
                pq.write_table(pa.table({"id": [i, i + 10]}), file)
    source = data.parquet(root, ["name", "id", "day"]).pin()
    assert source.schema().types == [pa.string(), pa.int64(), pa.int32()]
    rows = pa.Table.from_batches(b for split in source.splits() for b in source.read(split))
    expected = {
        (name, i + more, day)
        for name in ("a b", "7")
        for i, day in enumerate((1, 2, -3, None))
        for more in (0, 10)
    }
    assert set(zip(*rows.to_pydict().values(), strict=True)) == expected
    assert rows.num_rows == 16
    only = data.parquet(root, ["day"]).pin()
    assert sum(b.num_rows for split in only.splits() for b in only.read(split)) == 16
    with pytest.raises(ValueError, match=r"folder day=.* only hearth.data.parquet\(\) reads"):
        data.arrow(root).pin()


def test_one_row_group_that_many_splits_share_is_decoded_once(tmp_path, monkeypatch):
    pq.write_table(pa.table({"id": range(100_000)}), tmp_path / "a.parquet")
    source, opened = data.parquet(str(tmp_path)).pin(), []
    real = pq.ParquetFile.iter_batches
    monkeypatch.setattr(
        pq.ParquetFile, "iter_batches", lambda *args: opened.append(args) or real(*args)
    )
    splits = source.splits()
    rows = [b.column(0).to_pylist() for split in splits for b in source.read(split)]
    assert [value for part in rows for value in part] == list(range(100_000))
    assert len(opened) == 1 < len(splits)


def test_a_table_is_refused(tmp_path):
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "00000000000000000000.json").touch()
    with pytest.raises(ValueError, match="belongs to the Delta table"):
        data.parquet(str(tmp_path)).pin()


def test_a_row_group_that_begins_outside_its_file_is_an_error(tmp_path):
    path = tmp_path / "a.parquet"
    ids = pa.table({"id": pa.array(range(1000), pa.int64())})
    pq.write_table(ids, path, row_group_size=500, compression="none", use_dictionary=False)
    content = path.read_bytes()
    footer = content[-8 - int.from_bytes(content[-8:-4], "little") :]
    begins_at_4, before_the_file = b"\x26\x08", b"\x26\x07"
    assert begins_at_4 in footer
    path.write_bytes(content.removesuffix(footer) + footer.replace(begins_at_4, before_the_file))
    with pytest.raises(ValueError, match=r"a.parquet is damaged: row group 0 begins at byte -4"):
        data.parquet(str(path)).pin()


def test_a_file_that_was_written_again_with_the_same_size_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2]}), path)
    source = data.parquet(str(path)).pin()
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 5_000_000))
    with pytest.raises(ValueError, match=r"a\.parquet was modified"):
        list(source.read(source.splits()[0]))


def test_thousands_of_files_make_a_small_closure(tmp_path):
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "part-0.parquet")
    for index in range(3000):
        job = "c000-6f1c-4a58-9d11-51b3e2a1b7aa-c000.snappy.parquet"
        os.link(tmp_path / "part-0.parquet", tmp_path / f"part-{index:05}-{job}")
    source = data.parquet(str(tmp_path)).pin()
    assert sum(split.rows for split in source.splits()) == 6002
    assert len(pickle.dumps(source)) < 80_000


def test_a_pickled_source_is_the_same(tmp_path):
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    source = data.parquet(str(tmp_path), ["id"], spool=False)
    for one in (source, source.pin()):
        _ = one.packed and one.schema()  # caches must not be pickled
        other = pickle.loads(pickle.dumps(one))
        assert set(vars(other)) == {field.name for field in dataclasses.fields(one)}
        assert (other.uri, other.columns, other.packed) == (one.uri, one.columns, one.packed)
        assert other.spool is False


@pytest.mark.parametrize("columns", ["id", []])
def test_columns_are_a_list_of_names(columns):
    with pytest.raises(ValueError, match="is not a list of names"):
        data.parquet("/x", columns)
