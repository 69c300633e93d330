"""Tables that Spark writes: hearth.data reads each version as Spark does, and pins DataFrames.

`run.py FOLDER` uses the jars of Delta and Iceberg in FOLDER, which `make test-tables` fetches
before it runs this. Prints a line for each version of a table.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import frames
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from hearth import data

ICEBERG = "ice.db.rows"


def session(jars: Iterable[Path], warehouse: str) -> SparkSession:
    """A session with both kinds of tables."""
    settings = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        # Only C1, because the statements are so short that optimized compilation would not pay.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": f"{warehouse}/ice",
        "spark.sql.warehouse.dir": f"{warehouse}/spark",
        "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
    }
    builder = SparkSession.builder.master("local[2]").appName("tables")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def rows(begin: int, end: int) -> str:
    return (
        "select id, array(float(id), float(id) + 0.5) x, "
        "case when id % 2 = 0 then 'a b/c' else 'ä%20' end name, "
        "date '2026-11-27' + int(id % 2) day, "
        "named_struct('u', int(id), 'v', string(id)) s, timestamp_micros(id * 1000001) t, "
        f"cast(id as decimal(12,2)) d, int(id) n from range({begin}, {end}, 1, 2)"
    )


WIDER = (
    "select id, array(float(id)) features, 'other' name, date '2000-01-01' day, "
    "named_struct('u', int(id), 'v', string(id), 'w', id * 2) s, "
    "cast(id as decimal(12,2)) d, int(id) n, double(id) extra from range(200, 250)"
)


def write_delta(spark: SparkSession, path: str) -> None:
    table = f"delta.`{path}`"
    mapping = "'delta.columnMapping.mode'='name', 'delta.minReaderVersion'='2', "
    mapping += "'delta.minWriterVersion'='5'"
    for statement in (
        f"create table {table} using delta partitioned by (name, day) as {rows(0, 100)}",
        f"insert into {table} {rows(100, 200)}",
        f"delete from {table} where id % 7 = 3",
        f"alter table {table} set tblproperties({mapping})",
        f"alter table {table} rename column x to features",
        f"alter table {table} rename column name to label",
        f"alter table {table} drop column t",
        f"alter table {table} add columns (extra double, s.w long)",
        f"insert into {table} (id, features, label, day, s, d, n, extra) {WIDER}",
        f"optimize {table}",
        f"update {table} set extra = 5 where id = 5",
        f"delete from {table} where id in (0, 2, 201, 249)",
        f"insert overwrite {table} (id, features, label, day, s, d, n, extra) {WIDER}",
    ):
        spark.sql(statement)


def write_iceberg(spark: SparkSession) -> None:
    merged = ", ".join(f"'write.{what}.mode'='merge-on-read'" for what in ("delete", "update"))
    rewrite = "call ice.system.rewrite_data_files(table => 'db.rows', options => map("
    for statement in (
        f"create table {ICEBERG} using iceberg partitioned by (name, day, bucket(2, id)) "
        f"tblproperties('format-version'='2', {merged}) as {rows(0, 100)}",
        f"insert into {ICEBERG} {rows(100, 200)}",
        f"delete from {ICEBERG} where id % 7 = 3",
        f"alter table {ICEBERG} rename column x to features",
        f"alter table {ICEBERG} drop column t",
        f"alter table {ICEBERG} alter column n type bigint",
        f"alter table {ICEBERG} add columns (extra double, s.w bigint)",
        f"insert into {ICEBERG} {WIDER}",
        f"{rewrite}'rewrite-all', 'true'))",
        f"update {ICEBERG} set extra = 5 where id = 5",
        f"alter table {ICEBERG} set tblproperties('format-version'='3')",
        f"delete from {ICEBERG} where id in (0, 2, 201, 249)",
        f"insert overwrite {ICEBERG} {WIDER}",
    ):
        spark.sql(statement)


def found(source: Any) -> list[dict[str, Any]]:
    """The rows that ranks read, ordered by id."""
    batches = itertools.chain.from_iterable(map(source.read, source.splits()))
    return sorted(
        (row for batch in batches for row in batch.to_pylist()), key=lambda row: row["id"]
    )


def expected(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows that Spark reads, ordered by id."""
    found = [row.asDict(recursive=True) for row in frame.orderBy("id").collect()]
    for row in found:
        for name, value in row.items():
            if isinstance(value, datetime):  # Spark returns them in the local time zone
                row[name] = value.astimezone(UTC)
    return found


def compare(name: str, source: Any, frame: DataFrame) -> Iterator[str]:
    ours, theirs = found(source), expected(frame)
    same = ours == theirs and source.schema().names == frame.columns
    print(f"{name}: {len(theirs)} rows, {'as Spark' if same else 'DIFFERENT'}", flush=True)
    if not same:
        yield name
        wrong = [pair for pair in itertools.zip_longest(ours, theirs) if pair[0] != pair[1]]
        print(source.schema(), *wrong[:2], sep="\n", flush=True)


def check(spark: SparkSession, warehouse: str) -> list[str]:
    wrong: list[str] = []
    path = f"{warehouse}/de lta"
    write_delta(spark, path)
    for version in range(DeltaTable(path).version() + 1):
        frame = spark.read.format("delta").option("versionAsOf", version).load(path)
        source = data.delta(path, version=version).pin(spark)
        wrong += compare(f"Delta version {version}", source, frame)
    spark.sql(f"create table named using delta location '{path}'")
    wrong += compare("Delta by name", data.delta("named").pin(spark), spark.table("named"))
    write_iceberg(spark)
    for (snapshot,) in spark.sql(f"select snapshot_id from {ICEBERG}.snapshots").collect():
        # By SQL, because the option "snapshot-id" returns the present columns.
        frame = spark.sql(f"select * from {ICEBERG} version as of {snapshot}")
        source = data.iceberg(ICEBERG, snapshot_id=snapshot).pin(spark)
        wrong += compare(f"Iceberg snapshot {snapshot}", source, frame)
    folder = data.iceberg(f"{warehouse}/ice/db/rows").pin()
    wrong += compare("Iceberg by folder", folder, spark.table(ICEBERG))
    return wrong


def main() -> None:
    jars = sorted(Path(sys.argv[1]).glob("*.jar"))
    with tempfile.TemporaryDirectory(prefix="hearth-tables-") as warehouse:
        spark = session(jars, warehouse)
        named = [jar.stem for jar in jars if jar.name.startswith(("delta-spark", "iceberg"))]
        print(f"Spark {spark.version} with {' and '.join(named)}", flush=True)
        wrong = check(spark, warehouse) + frames.check(spark, warehouse)
        spark.stop()
    if wrong:
        sys.exit(f"not as it should be: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
