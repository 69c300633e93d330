"""Delta tables as sources: versions, columns, deletion vectors, and refused tables."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema, WriterProperties, write_deltalake
from deltalake.transaction import AddAction
from table_logs import add_commit, delete_rows_of_delta, last_actions
from table_rows import ids, read, rows

from hearth import data
from hearth.cluster.driver.datasets.stored_plan import StoredPlan
from hearth.cluster.node.datasets.program import Plan
from hearth.data.loader import Loader
from hearth.data.options import LoaderOptions
from hearth.data.streamed import StreamedDataset
from hearth.files.stored_files import Block
from hearth.sources import parquet
from hearth.sources.rank_rows import RankRows
from hearth.sources.tables import data_files


@pytest.fixture
def table(tmp_path):
    """A table with rows 0 to 99 as version 0."""
    path = str(tmp_path / "table")
    write_deltalake(path, rows(0, 100))
    return path


def test_a_pinned_version_stays_while_the_table_changes(table):
    source = data.delta(table).pin()
    assert source.version == "Delta version 0"
    write_deltalake(table, rows(100, 150), mode="append")
    DeltaTable(table).delete("id % 2 = 0")
    write_deltalake(table, rows(150, 160), mode="append")
    DeltaTable(table).optimize.compact()
    write_deltalake(table, rows(500, 510), mode="overwrite")
    again = pickle.loads(pickle.dumps(source))
    assert ids(again) == list(range(100))
    assert again.identity() == source.identity()
    assert again.identity().startswith("Delta version 0, 100 rows, ")
    assert again.extent.startswith("Delta version 0, 1 files with ")
    wanted = {1: range(150), 2: range(1, 150, 2), 5: range(500, 510)}
    wanted[3] = wanted[4] = [*wanted[2], *range(150, 160)]
    for version, left in wanted.items():
        assert ids(data.delta(table, version=version).pin()) == list(left)
    assert data.delta(table).pin().version == "Delta version 5"
    identities = {data.delta(table, version=version).pin().identity() for version in range(6)}
    assert len(identities) == 6


def test_a_version_is_named_by_a_time(table):
    between = datetime.now(UTC)
    while datetime.now(UTC) - between < timedelta(milliseconds=1):
        pass  # the log has a resolution of 1 ms
    write_deltalake(table, rows(100, 150), mode="append")
    assert data.delta(table, timestamp=between).pin().version == "Delta version 0"
    later = datetime.now(UTC).isoformat()
    assert data.delta(table, timestamp=later).pin().version == "Delta version 1"
    with pytest.raises(
        ValueError, match=r"no version at 2020-01-01T00:00:00\+00:00: the log begins"
    ):
        data.delta(table, timestamp="2020-01-01T00:00:00Z").pin()
    for bad, why in (("2020-01-01", "has no time zone"), ("yesterday", "is not a timestamp")):
        with pytest.raises(ValueError, match=f"timestamp='{bad}' {why}"):
            data.delta(table, timestamp=bad).pin()


def test_files_that_were_vacuumed_are_named_with_the_version(table):
    source = data.delta(table).pin()
    write_deltalake(table, rows(0, 10), mode="overwrite")
    (file,) = DeltaTable(table, version=0).file_uris()
    log = DeltaTable(table)
    log.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert not Path(file).exists()
    named = rf"Delta version 0 of {table}: {file} is missing .* do not vacuum"
    with pytest.raises(ValueError, match=named):
        read(source)
    with pytest.raises(
        FileNotFoundError, match=f"Delta version 0 of {table} needs the file {file}"
    ):
        data.delta(table, version=0).pin()
    assert ids(data.delta(table).pin()) == list(range(10))


def test_partition_columns_have_their_types_and_values(tmp_path):
    path = str(tmp_path / "table")
    names = ["a", "b b/c=%20", "ä", None]
    days = [date(2026, 11, 27), date(1969, 1, 1), date(2026, 1, 2), None]
    table = rows(0, 4).append_column("name", pa.array(names)).append_column("day", pa.array(days))
    table = table.append_column("n", pa.array([1, -2, None, 1 << 40]))
    write_deltalake(path, table, partition_by=["name", "day", "n"])
    source = data.delta(path).pin()
    assert read(source).sort_by("id") == table
    only = data.delta(path, ["day", "name"]).pin()
    assert only.schema().names == ["day", "name"]
    assert set(read(only).column("name").to_pylist()) == set(names)


def test_files_as_spark_writes_them(tmp_path):
    """INT96 timestamps of years that nanoseconds cannot represent, and escaped paths in the log."""
    folder = tmp_path / "table" / "day=a b%3Ac"
    folder.mkdir(parents=True)
    times = [datetime(year, 2, 3, 4, 5, 6, 7, tzinfo=UTC) for year in (1600, 2026, 9000)]
    whole = pa.table({"t": pa.array(times, pa.timestamp("us", "UTC")), "day": ["a b:c"] * 3})
    pq.write_table(whole.select(["t"]), folder / "p.parquet", use_deprecated_int96_timestamps=True)
    path, schema = str(tmp_path / "table"), Schema.from_arrow(whole.schema)
    table = DeltaTable.create(path, schema, partition_by=["day"])
    size, name = (folder / "p.parquet").stat().st_size, "day=a b%3Ac/p.parquet"
    added = AddAction(name, size, {"day": "a b:c"}, 1, True, '{"numRecords": 3}')
    table.create_write_transaction([added], "append", schema, partition_by=["day"])
    (logged,) = last_actions(path, "add")
    assert logged["add"]["path"] == "day=a%20b%253Ac/p.parquet"
    assert read(data.delta(path).pin()) == whole


def test_columns_that_older_files_lack_are_null(table):
    wider = rows(100, 110).append_column("w", pa.array([1.5] * 10))
    wider = wider.append_column("s", pa.array([{"a": 1}] * 10))
    write_deltalake(table, wider, mode="append", schema_mode="merge")
    found = read(data.delta(table, ["id", "w", "s"]).pin()).sort_by("id").to_pylist()
    assert [row["w"] for row in found] == [None] * 100 + [1.5] * 10
    assert [row["s"] for row in found] == [None] * 100 + [{"a": 1}] * 10
    assert data.delta(table, version=0).pin().schema().names == ["id", "x"]


def test_renamed_columns_and_fields_are_found_by_their_physical_names(tmp_path):
    path = str(tmp_path / "table")
    conf = {"delta.columnMapping.mode": "name", "delta.minReaderVersion": "2"}
    conf["delta.minWriterVersion"] = "5"
    pairs = [{"a": i, "b": f"{i} b"} for i in range(4)]
    table = pa.table(
        {"id": range(4), "s": pairs, "l": [[pair] for pair in pairs], "d": [0, 0, 1, 1]}
    )
    schema = table.schema
    DeltaTable.create(path, schema, partition_by=["d"], configuration=conf)
    write_deltalake(path, table, mode="append")
    (change,) = last_actions(path, "metaData")
    fields = json.loads(change["metaData"]["schemaString"])
    by_name = {field["name"]: field for field in fields["fields"]}
    swapped = {"a": "b", "b": "a"}
    by_name["id"]["name"] = "number"
    by_name["d"]["name"] = "day"
    for struct in (by_name["s"]["type"], by_name["l"]["type"]["elementType"]):
        for part in struct["fields"]:
            part["name"] = swapped[part["name"]]
    change["metaData"]["schemaString"] = json.dumps(fields)
    change["metaData"]["partitionColumns"] = ["day"]
    add_commit(path, [change])
    found = read(data.delta(path).pin()).sort_by("number").to_pylist()
    other = [{"b": pair["a"], "a": pair["b"]} for pair in pairs]
    assert found == [{"number": i, "s": other[i], "l": [other[i]], "day": i // 2} for i in range(4)]


def test_deleted_rows_are_found_under_unusual_paths(tmp_path):
    path = str(tmp_path / "table")
    names = ["b b/c=%20", "ä"] * 5
    table = rows(0, 10).append_column("name", pa.array(names))
    features = {"delta.enableDeletionVectors": "true"}
    write_deltalake(path, table, partition_by=["name"], configuration=features)
    delete_rows_of_delta(path, [1])
    moved = f"{tmp_path}/a b%20c"
    os.rename(path, moved)
    os.symlink(moved, path)
    for uri in (path, moved):
        assert ids(data.delta(uri).pin()) == [0, 1, *range(4, 10)]


def test_rows_of_deletion_vectors_are_left_out(tmp_path):
    path = str(tmp_path / "table")
    features = {"delta.enableDeletionVectors": "true"}
    groups = WriterProperties(max_row_group_size=300)
    write_deltalake(path, rows(0, 1000), configuration=features, writer_properties=groups)
    before = data.delta(path).pin()
    deleted = [0, 1, 299, 300, *range(600, 900), 999]
    delete_rows_of_delta(path, deleted)
    source = data.delta(path).pin()
    left = sorted(set(range(1000)) - set(deleted))
    assert ids(source) == left
    assert ids(data.delta(f"local://{path}").pin(object())) == left  # reads a copy of the log
    assert sum(split.rows for split in source.splits()) == len(left)
    assert source.pinned.files[0].identity() != before.pinned.files[0].identity()
    assert ids(before) == list(range(1000))
    for world in (1, 3):
        shares = RankRows(source)
        each = [list(shares.read(rank, world)) for rank in range(world)]
        counts = [sum(batch.num_rows for batch in share) for share in each]
        assert max(counts) - min(counts) <= 1
        every = [i for share in each for batch in share for i in batch.column("id").to_pylist()]
        assert every == left
    (file,) = DeltaTable(path).file_uris()
    delete_rows_of_delta(path, [1000])
    with pytest.raises(
        ValueError, match=f"length 1001 exceeds numRecords 1000 .*{Path(file).name}"
    ):
        data.delta(path).pin()


def test_small_files_are_planned_by_the_log_alone(tmp_path, monkeypatch):
    path = str(tmp_path / "table")
    features = {"delta.enableDeletionVectors": "true"}
    many = [rows(i * 3, i * 3 + 3) for i in range(300)]
    parts = [part.append_column("p", pa.array([i] * 3)) for i, part in enumerate(many)]
    write_deltalake(path, pa.concat_tables(parts), partition_by=["p"], configuration=features)
    delete_rows_of_delta(path, [1])
    opened = []
    real = parquet.footer_of
    monkeypatch.setattr(parquet, "footer_of", lambda file: opened.append(file) or real(file))
    source = data.delta(path, ["id"]).pin()
    assert opened == []
    assert sum(split.rows for split in source.splits()) == 600
    assert ids(source) == sorted(i for i in range(900) if i % 3 != 1)


def test_splits_name_the_hosts_that_have_their_files(table, monkeypatch):
    real = data_files.stored_in

    def listed(*args):
        return [replace(file, blocks=blocks(file.size)) for file in real(*args)]

    def blocks(size):
        return (Block(0, size, frozenset("a")),)

    assert {split.hosts for split in data.delta(table).pin().splits()} == {frozenset()}
    monkeypatch.setattr(data_files, "stored_in", listed)
    assert {split.hosts for split in data.delta(table).pin().splits()} == {frozenset("a")}


def test_a_resumed_run_reads_the_same_version(table, tmp_path):
    folder = f"file://{tmp_path}/checkpoints"
    plan = StoredPlan(folder)
    first = plan.pinned("train", data.delta(table), None)
    plan.owners("train", 1, len(first.splits()), lambda: [0] * len(first.splits()))
    write_deltalake(table, rows(100, 150), mode="append")
    DeltaTable(table).optimize.compact()
    again = StoredPlan(folder).pinned("train", data.delta(table), None)
    assert again.identity() == first.identity()
    assert ids(again) == list(range(100))
    named = StoredPlan(folder).pinned("train", data.delta(table, version=1), None)
    assert named.version == "Delta version 1"
    other = StoredPlan(folder).pinned("eval", data.delta(table), None)
    assert other.version == "Delta version 2"


def loader(source) -> Loader:
    """A loader for a single rank, which reads the files again in each epoch."""
    plan = Plan(0, 1, (0,) * len(source.splits()), source.identity())
    return Loader(StreamedDataset("train", plan, source), LoaderOptions(16))


def numbers(batches) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def test_compaction_between_epochs_and_before_a_restart_changes_no_batch(tmp_path):
    table, folder = str(tmp_path / "table"), f"file://{tmp_path}/checkpoints"
    for i in range(4):
        write_deltalake(table, rows(i * 50, i * 50 + 50), mode="append")
    whole = loader(data.delta(table).pin())
    expected = [numbers(whole), numbers(whole)]
    plan = StoredPlan(folder)
    source = plan.pinned("train", data.delta(table), None)
    plan.owners("train", 1, len(source.splits()), lambda: [0] * len(source.splits()))
    first = loader(source)
    assert numbers(first) == expected[0]
    DeltaTable(table).optimize.compact()
    some = numbers(itertools.islice(first, 5))
    state = first.state_dict()
    write_deltalake(table, rows(0, 200), mode="overwrite")
    second = loader(StoredPlan(folder).pinned("train", data.delta(table), None))
    second.load_state_dict(state)
    assert some + numbers(second) == expected[1]
    newest = loader(data.delta(table, version=5).pin())
    both = r"has changed .* \(saved with Delta version 3, 200 rows, \w+, now Delta version 5, 200 "
    with pytest.raises(ValueError, match=both):
        newest.load_state_dict(state)


def test_a_version_or_table_that_is_missing_is_named(table, tmp_path):
    missing = f"the Delta table {table} has no version 7: the newest is 0"
    with pytest.raises(FileNotFoundError, match=missing):
        data.delta(table, version=7).pin()
    with pytest.raises(FileNotFoundError, match="does not exist, or is not a Delta table"):
        data.delta(str(tmp_path / "none")).pin()
    with pytest.raises(ValueError, match="some_table is neither a folder nor"):
        data.delta("some_table").pin()
    with pytest.raises(ValueError, match="version and timestamp are mutually exclusive"):
        data.delta(table, version=1, timestamp="2026-01-01T00:00:00Z")
    for bad in (-1, "3", 1.0):
        with pytest.raises(ValueError, match="is not a version number"):
            data.delta(table, version=bad)
    log = Path(table, "_delta_log", f"{0:020}.json")
    log.write_bytes(log.read_bytes()[:-40])
    with pytest.raises(ValueError, match=f"the Delta table {table} cannot be read: "):
        data.delta(table).pin()


def test_features_that_are_not_supported_are_named(table):
    (protocol,) = last_actions(table, "protocol")
    features = ["deletionVectors", "mirrors"]
    protocol["protocol"] |= {"minReaderVersion": 3, "minWriterVersion": 7}
    protocol["protocol"] |= {"readerFeatures": features, "writerFeatures": features}
    add_commit(table, [protocol])
    with pytest.raises(ValueError, match=r"cannot be read: .*mirrors"):
        data.delta(table).pin()


def test_the_package_that_is_missing_is_named(table, monkeypatch):
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(ImportError, match=r"pip install 'hearth-spark\[delta\]'"):
        data.delta(table).pin()


def test_ranks_need_no_library_of_the_table(table, tmp_path):
    (tmp_path / "source").write_bytes(pickle.dumps(data.delta(table).pin()))
    program = f"""
import pickle, sys
sys.modules["deltalake"] = sys.modules["pyiceberg"] = None
source = pickle.load(open({str(tmp_path / "source")!r}, "rb"))
print(sum(batch.num_rows for split in source.splits() for batch in source.read(split)))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout == "100\n", ran.stderr


def test_a_table_without_rows_is_a_source_without_splits(tmp_path):
    path = str(tmp_path / "table")
    DeltaTable.create(path, rows(0, 1).schema)
    source = data.delta(path).pin()
    assert source.splits() == []
    assert source.schema() == rows(0, 1).schema
    assert source.identity().startswith("Delta version 0, 0 rows, ")
    assert not source.remote


def test_a_log_with_a_checkpoint_is_read(table):
    for i in range(1, 4):
        write_deltalake(table, rows(i * 100, i * 100 + 100), mode="append")
    DeltaTable(table).create_checkpoint()
    for i in range(3):
        Path(table, "_delta_log", f"{i:020}.json").unlink()
    source = data.delta(table).pin()
    assert source.version == "Delta version 3"
    assert np.array_equal(ids(source), np.arange(400))
    assert ids(data.delta(f"local://{table}").pin(object())) == list(range(400))  # reads a copy
