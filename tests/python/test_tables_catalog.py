"""Tables of Spark's catalogs by name, with a fake session that replies like Spark Connect."""

from __future__ import annotations

import json
from datetime import date
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyarrow import orc
from pyspark.sql.pandas.types import from_arrow_schema
from table_rows import ids, read, rows

from hearth import data
from hearth.cluster.driver.datasets.stored_plan import StoredPlan
from hearth.sources.tables.names import uri_of

TEXT = "org.apache.hadoop.mapred.TextInputFormat"
PARQUET = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
COLUMNS = {
    "id": pa.int64(),
    "x": pa.list_(pa.float32()),
    "Name": pa.string(),
    "s": pa.struct([("A", pa.int32())]),
    "day": pa.date32(),
    "n": pa.int32(),
}
ID = {"id": pa.int64()}


class Session:
    """A fake catalog: {table: (DESCRIBE's result, columns, partitions)}, where partitions maps SHOW
    PARTITIONS' texts to folders.
    """

    def __init__(self, **tables):
        self.tables = tables
        self.catalog = SimpleNamespace(listColumns=self._columns)
        self.conf = SimpleNamespace(get=lambda key, default=None: default)

    def sql(self, text):
        name = text.partition("`")[2].partition("`")[0]
        if name not in self.tables:
            raise RuntimeError(f"[TABLE_OR_VIEW_NOT_FOUND] {name}\nmore")
        known, _, partitions = self.tables[name]
        if text.startswith("SHOW"):
            return SimpleNamespace(collect=lambda: [(spec,) for spec in partitions])
        rows = [("Location", "a column"), ("# Detailed Table Information", "")]
        if "PARTITION" in text:
            rows += [("Location", partitions[self._spec(text, partitions)]), ("# Storage", "")]
        return SimpleNamespace(collect=lambda: [*rows, *known.items()])

    def _spec(self, text, partitions):
        """Parses PARTITION (`day`='2026-01-01', `n`=null)."""
        parts = text.partition("PARTITION (")[2].rstrip(") ").split(", ")
        given = [tuple(part.replace("`", "").split("=")) for part in parts]
        wanted = [("__HIVE_DEFAULT_PARTITION__" if v == "null" else v.strip("'")) for _, v in given]
        (found,) = (s for s in partitions if [p.partition("=")[2] for p in s.split("/")] == wanted)
        return found

    def table(self, name):
        schema = pa.schema(self.tables[name.strip("`")][1])
        return SimpleNamespace(schema=from_arrow_schema(schema))

    def _columns(self, name):
        _, columns, partitions = self.tables[name.strip("`")]
        keys = [part.partition("=")[0] for part in next(iter(partitions), "").split("/")]
        return [SimpleNamespace(name=column, isPartition=column in keys) for column in columns]


def part(begin, end, **columns):
    names = pa.array([f"{i}" for i in range(begin, end)])
    structs = pa.array([{"a": i} for i in range(begin, end)], pa.struct([("a", pa.int32())]))
    table = rows(begin, end).append_column("name", names).append_column("s", structs)
    for name, values in columns.items():
        table = table.append_column(name, values)
    return table


def write(kind, path, table):
    path.parent.mkdir(parents=True, exist_ok=True)
    (pq if kind == "parquet" else orc).write_table(table, str(path))


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_partitions_are_read_from_their_catalog_locations(tmp_path, kind):
    folders = {
        "day=2026-01-01/n=7": tmp_path / "t" / "day=2026-01-01" / "n=7",
        "day=2026-01-02/n=__HIVE_DEFAULT_PARTITION__": tmp_path / "else where%20" / "7%2F",
        "day=2027-01-01/n=8": tmp_path / "t" / "nothing",
    }
    write(kind, folders["day=2026-01-01/n=7"] / "part-0", part(0, 10))
    write(kind, folders["day=2026-01-02/n=__HIVE_DEFAULT_PARTITION__"] / "part-0", part(10, 20))
    write(kind, tmp_path / "t" / "day=2026-01-09" / "n=7" / "part-0", part(50, 60))  # dropped
    known = {"Provider": kind, "Location": f"file:{tmp_path}/t", "Partition Provider": "Catalog"}
    spark = Session(t=(known, COLUMNS, {spec: f"file:{at}" for spec, at in folders.items()}))
    source = data.table("t").pin(spark)
    found = sorted(read(source).to_pylist(), key=lambda row: row["id"])
    assert source.schema().names == ["id", "x", "Name", "s", "day", "n"]
    assert [row["id"] for row in found] == list(range(20))
    assert found[3] == {
        "id": 3, "x": [3, 3.5], "Name": "3", "s": {"A": 3}, "day": date(2026, 1, 1), "n": 7
    }  # fmt: skip
    assert {(row["day"], row["n"]) for row in found[10:]} == {(date(2026, 1, 2), None)}
    only = data.table("t", ["n", "day"]).pin(spark)
    assert read(only).column("n").to_pylist().count(7) == 10
    other = {**spark.tables["t"][2]}
    other["day=2026-01-01/n=9"] = other.pop("day=2026-01-01/n=7")
    moved = data.table("t").pin(Session(t=(known, COLUMNS, other)))
    assert moved.identity() != source.identity()


def test_partitions_that_the_catalog_does_not_have_are_folders(tmp_path):
    write("parquet", tmp_path / "t" / "day=2026-01-01" / "n=7" / "part-0", part(0, 10))
    spark = Session(
        t=({"Provider": "PARQUET", "Location": f"{tmp_path}/t"}, COLUMNS, {"day=/n=": ""})
    )
    found = read(data.table("t").pin(spark))
    assert found.column("day").to_pylist() == [date(2026, 1, 1)] * 10
    assert found.column("n").type == pa.int32()


def test_columns_that_older_files_lack_are_null_and_others_are_cast(tmp_path):
    columns = ID | {"more": pa.float64(), "NAME": pa.string(), "n": pa.int64()}
    write("parquet", tmp_path / "t" / "0", part(0, 5))
    write("parquet", tmp_path / "t" / "1", part(5, 9, n=pa.array([1] * 4, pa.int32())))
    hive = {"Provider": "hive", "InputFormat": PARQUET, "Location": f"{tmp_path}/t"}
    found = read(data.table("t").pin(Session(t=(hive, columns, {})))).sort_by("id")
    assert found.column("more").to_pylist() == [None] * 9
    assert found.column("NAME").to_pylist() == [str(i) for i in range(9)]
    assert found.column("n").to_pylist() == [None] * 5 + [1] * 4
    write("parquet", tmp_path / "t" / "2", pa.table({"_col0": [1]}))
    source = data.table("t").pin(Session(t=(hive, columns, {})))
    with pytest.raises(ValueError, match=r"t/2 .* no column of the table; it has _col0"):
        read(source)


def test_a_file_without_a_column_that_has_a_default_is_refused(tmp_path):
    write("parquet", tmp_path / "t" / "0", part(0, 5))
    known = {"Provider": "parquet", "Location": f"{tmp_path}/t"}
    spark = Session(t=(known, ID | {"more": pa.float64()}, {}))
    schema = spark.table("t").schema
    schema["more"].metadata = {"EXISTS_DEFAULT": "5.0"}
    spark.table = lambda name: SimpleNamespace(schema=schema)
    with pytest.raises(ValueError, match=r"t/0 .*lacks column 'more', .* a default value"):
        read(data.table("t").pin(spark))
    assert ids(data.table("t", ["id"]).pin(spark)) == list(range(5))


def test_locations_of_local_files_stay_local_and_are_no_escapes():
    assert uri_of("file:/a b/x%2F") == "file:/a%20b/x%252F"
    assert uri_of("file:///a") == "file:/a"
    assert uri_of("hdfs://name/a b%2F") == "hdfs://name/a b%2F"


def test_a_table_without_files_has_no_splits(tmp_path):
    known = {"Provider": "parquet", "Location": f"{tmp_path}/none"}
    source = data.table("t").pin(Session(t=(known, COLUMNS, {})))
    assert source.splits() == []
    assert source.schema().names[0] == "id"


def test_versioned_tables_are_read_by_their_formats_source(tmp_path):
    path = str(tmp_path / "table")
    write_deltalake(path, rows(0, 10))
    write_deltalake(path, rows(10, 20), mode="append")
    spark = Session(t=({"Provider": "delta", "Location": path}, ID, {}))
    assert data.table("t").pin(spark).version == "Delta version 1"
    assert ids(data.table("t", version=0).pin(spark)) == list(range(10))


def test_a_driver_that_is_started_again_keeps_the_files(tmp_path):
    write("parquet", tmp_path / "t" / "part-0", part(0, 10))
    known = {"Provider": "parquet", "Location": f"{tmp_path}/t"}
    spark = Session(t=(known, ID, {}))
    table = data.table("t")
    kept = StoredPlan(f"{tmp_path}/run", ("app", "1"))
    first = kept.pinned("train", table.resolved(spark), None)
    kept.owners("train", 1, 1, lambda: [0])
    write("parquet", tmp_path / "t" / "part-1", part(10, 20))
    assert json.loads((tmp_path / "run" / "datasets.json").read_text())["files"]
    again = StoredPlan(f"{tmp_path}/run", ("app", "2")).pinned("train", table.resolved(spark), None)
    assert again.identity() == first.identity()
    assert ids(data.table("t").pin(spark)) == list(range(20))


@pytest.mark.parametrize(
    ("known", "columns", "options", "said"),
    [
        ({"Provider": "csv", "Location": "/x"}, ID, {}, "the table t is of csv, .*spark.table"),
        ({"Type": "VIEW"}, ID, {}, "the table t is of view, "),
        (
            {"Provider": "hive", "InputFormat": TEXT, "Location": "/x"},
            ID,
            {},
            "of Hive with files of TextInputFormat",
        ),
        (
            {"Provider": "parquet", "Location": "/x"},
            ID,
            {"version": 3},
            "is stored as parquet, which does not support versions",
        ),
        (
            {"Provider": "orc", "Location": "/x"},
            {"t": pa.timestamp("us", "UTC")},
            {},
            "column 't': timestamps of ORC files depend on the zone",
        ),
    ],
)
def test_tables_that_ranks_cannot_read_are_refused(known, columns, options, said):
    with pytest.raises(ValueError, match=said):
        data.table("t", **options).pin(Session(t=(known, columns, {})))


def test_names_that_the_catalog_does_not_have_are_refused():
    with pytest.raises(ValueError, match=r"Spark has no table none: \[TABLE_OR_VIEW_NOT_FOUND\]"):
        data.table("none").pin(Session())
    with pytest.raises(ValueError, match=r"the table /x/y: it is not a table name"):
        data.table("/x/y").pin(Session())
    with pytest.raises(ValueError, match="there is no Spark session"):
        data.table("t").pin()


def test_a_partition_value_of_another_type_is_named(tmp_path):
    write("parquet", tmp_path / "t" / "part-0", part(0, 10))
    known = {"Provider": "parquet", "Location": "/x", "Partition Provider": "Catalog"}
    where = {"day=today/n=1": f"{tmp_path}/t"}
    source = data.table("t").pin(Session(t=(known, COLUMNS, where)))
    with pytest.raises(ValueError, match="day=today, which is not a date32"):
        read(source)
