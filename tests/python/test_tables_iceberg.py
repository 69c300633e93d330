"""Iceberg tables as sources: snapshots, columns, deletes, and refused tables."""

from __future__ import annotations

import os
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import DoubleType, LongType
from table_logs import (
    add_delete_file,
    deletion_vectors,
    iceberg_catalog,
    position_deletes,
    write_hint,
)
from table_rows import ids, read, rows

from hearth import data
from hearth.cluster.driver.datasets.stored_plan import StoredPlan


@pytest.fixture
def catalog(tmp_path):
    return iceberg_catalog(f"file://{tmp_path}", tmp_path)


@pytest.fixture
def table(catalog):
    """A table with rows 0 to 99 in one snapshot."""
    made = catalog.create_table("db.rows", rows(0, 1).schema)
    made.append(rows(0, 100))
    return made


def test_a_pinned_snapshot_stays_while_the_table_changes(table):
    source = data.iceberg(table).pin()
    first = table.current_snapshot().snapshot_id
    assert source.version == f"Iceberg snapshot {first}"
    table.append(rows(100, 150))
    table.delete("id >= 30")
    table.overwrite(rows(500, 510))
    wanted = [range(100), range(150), range(30), range(500, 510)]  # the others lie between
    snapshots = {s.snapshot_id: s for s in table.snapshots()}
    found = [ids(data.iceberg(table, snapshot_id=s).pin()) for s in snapshots]
    assert [found.index(list(left)) for left in wanted] == [0, 1, 3, len(found) - 1]
    assert ids(source) == list(range(100))
    assert source.identity().startswith(f"Iceberg snapshot {first}, 100 rows, ")
    identities = {data.iceberg(table, snapshot_id=s).pin().identity() for s in snapshots}
    assert len(identities) == len(snapshots)
    before = datetime.fromtimestamp(snapshots[first].timestamp_ms / 1000, UTC)
    assert data.iceberg(table, as_of=before).pin().identity() == source.identity()
    with pytest.raises(ValueError, match=r"db.rows cannot be read: it has no snapshot of"):
        data.iceberg(table, as_of=before - timedelta(days=1)).pin()
    with pytest.raises(ValueError, match="it has no snapshot 7, which may have expired: name one"):
        data.iceberg(table, snapshot_id=7).pin()
    with pytest.raises(ValueError, match="as_of='2026-01-01' has no time zone"):
        data.iceberg(table, as_of="2026-01-01").pin()


def test_a_table_is_given_by_its_folder_or_its_metadata_file(table, tmp_path):
    folder = table.location().removeprefix("file://")
    for uri in (table.metadata_location, table.metadata_location.removeprefix("file://")):
        assert ids(data.iceberg(uri).pin()) == list(range(100))
    with pytest.raises(ValueError, match=r"has no metadata/version-hint.text, so only its"):
        data.iceberg(folder).pin()
    write_hint(Path(folder), table.metadata_location)
    assert ids(data.iceberg(folder).pin()) == list(range(100))
    assert ids(data.iceberg(f"local://{folder}").pin(object())) == list(range(100))
    with pytest.raises(FileNotFoundError, match="does not exist, or has no files in its folder"):
        data.iceberg(str(tmp_path / "none")).pin()
    Path(table.metadata_location.removeprefix("file://")).write_text('{"format-version": 2}')
    with pytest.raises(ValueError, match=f"the Iceberg table {folder} cannot be read: "):
        data.iceberg(folder).pin()


def test_missing_files_are_named_with_the_snapshot(table):
    source = data.iceberg(table).pin()
    (file,) = (task.file.file_path for task in table.scan().plan_files())
    with open(file.removeprefix("file://"), "ab") as longer:
        longer.write(b"more")
    with pytest.raises(
        ValueError, match=r"db.rows has a damaged file: .* has \d+ bytes instead of"
    ):
        data.iceberg(table).pin()
    os.remove(file.removeprefix("file://"))
    with pytest.raises(ValueError, match=r"Iceberg snapshot \d+ of db.rows: .*parquet is missing"):
        read(source)
    with pytest.raises(FileNotFoundError, match=r"Iceberg snapshot \d+ of db.rows needs the file"):
        data.iceberg(table).pin()


def test_columns_that_were_renamed_moved_widened_or_added_are_found_by_their_ids(catalog):
    small = rows(0, 4).append_column("s", pa.array([{"a": i, "b": f"{i} b"} for i in range(4)]))
    small = small.append_column("n", pa.array([1, 2, 3, None], pa.int32()))
    small = small.append_column("old", pa.array([7] * 4))
    made = catalog.create_table("db.rows", small.schema)
    made.append(small)
    before = made.current_snapshot().snapshot_id
    with made.update_schema() as change:
        change.rename_column("id", "number")
    with made.update_schema() as change:
        change.rename_column("s.a", "c")
        change.add_column(("s", "d"), LongType())
        change.update_column("n", LongType())
        change.delete_column("old")
        change.add_column("id", DoubleType())
        change.move_first("s")
    made.append(pa.table({"number": [9], "id": [0.5]}))
    source = data.iceberg(made).pin()
    assert source.schema().names == ["s", "number", "x", "n", "id"]
    found = read(source).sort_by("number").to_pylist()
    assert [row["number"] for row in found] == [0, 1, 2, 3, 9]
    assert [row["id"] for row in found] == [None] * 4 + [0.5]
    assert [row["n"] for row in found] == [1, 2, 3, None, None]
    assert found[1]["s"] == {"c": 1, "b": "1 b", "d": None}
    assert found[4]["s"] is None
    assert found[1]["x"] == [1, 1.5]
    old = data.iceberg(made, snapshot_id=before).pin()
    assert old.schema().names == small.schema.names
    assert read(old).to_pylist() == small.to_pylist()


def test_partition_columns_come_from_the_log(catalog):
    table = rows(0, 4).append_column("day", pa.array([date(2026, 11, 27), None] * 2))
    table = table.append_column("name", pa.array(["a/b c", "ä", None, "a/b c"]))
    made = catalog.create_table("db.rows", table.schema)
    with made.update_spec() as spec:
        spec.add_identity("day").add_identity("name")
    made.append(table)
    assert read(data.iceberg(made).pin()).sort_by("id") == table


def test_deleted_positions_are_left_out(table):
    before = data.iceberg(table).pin()
    (file,) = (task.file.file_path for task in table.scan().plan_files())
    add_delete_file(table, file, "positions", position_deletes(file, [0, 5, 99]), 3)
    add_delete_file(table, file, "positions", position_deletes(file, [5, 6]), 2)
    add_delete_file(table, file, "vectors", deletion_vectors(file, [0, 10]), 2)
    table.append(rows(100, 103))
    source = data.iceberg(table).pin()
    left = sorted(set(range(103)) - {0, 5, 6, 10, 99})
    assert ids(source) == left
    assert sum(split.rows for split in source.splits()) == len(left)
    assert ids(before) == list(range(100))


def test_unsupported_features_are_named(table, catalog):
    add_delete_file(table, "", "equality", b"", 1)
    with pytest.raises(ValueError, match="has equality deletes, which are not supported: rewrite"):
        data.iceberg(table).pin()
    kind = pa.map_(pa.string(), pa.struct([("a", pa.int64())]))
    made = catalog.create_table("db.maps", pa.schema([("m", kind)]))
    with pytest.raises(ValueError, match="column 'm': maps with structs are not supported"):
        data.iceberg(made).pin()


def test_a_file_without_ids_needs_a_name_mapping(table, tmp_path):
    pq.write_table(rows(100, 103), tmp_path / "plain.parquet")
    table.add_files([f"file://{tmp_path}/plain.parquet"])
    assert ids(data.iceberg(table).pin()) == list(range(103))
    with table.transaction() as change:
        change.remove_properties("schema.name-mapping.default")
    with pytest.raises(ValueError, match=r"plain.parquet cannot be read .*has no field ids, and"):
        read(data.iceberg(table).pin())


def test_a_resumed_run_reads_the_same_snapshot(table, tmp_path):
    folder = f"file://{tmp_path}/checkpoints"
    plan = StoredPlan(folder)
    first = plan.pinned("train", data.iceberg(table), None)
    plan.owners("train", 1, len(first.splits()), lambda: [0] * len(first.splits()))
    table.overwrite(rows(100, 150))
    again = StoredPlan(folder).pinned("train", data.iceberg(table), None)
    assert again.identity() == first.identity()
    assert ids(again) == list(range(100))


def test_a_table_without_a_snapshot_has_no_splits(catalog):
    source = data.iceberg(catalog.create_table("db.rows", rows(0, 1).schema)).pin()
    assert source.splits() == []
    assert source.schema() == rows(0, 1).schema
    assert source.identity().startswith("Iceberg snapshot none, 0 rows, ")


def test_the_package_that_is_missing_is_named(tmp_path, monkeypatch):
    for module in [name for name in sys.modules if name.partition(".")[0] == "pyiceberg"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pyiceberg", None)
    with pytest.raises(ImportError, match=r"pip install 'hearth-spark\[iceberg\]'"):
        data.iceberg(str(tmp_path)).pin()
