"""Catalog tables of Parquet and ORC files: hearth.data.table reads them by name as Spark does.

`catalogs.py in-memory|hive|connect`: with Spark's own catalog, with Hive's in Derby, or with the
latter through Spark Connect. Prints a line for each table.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from typing import Any

from pyspark.sql import SparkSession

from hearth import data

ROWS = (
    "select id, array(float(id), id + 0.5f) x, case when id % 2 = 0 then 'a b/c' else 'ä%20' end "
    "name, named_struct('u', int(id), 'V', string(id)) s, date '2026-11-27' + int(id) on_day, "
    "int(id % 3) n, case when id % 5 = 0 then null else date '2026-11-27' + int(id % 2) end day "
    "from range({}, {}, 1, 2)"
)
COLUMNS = "id bigint, x array<float>, name string, s struct<u: int, V: string>, on_day date, n int"


def session(kind: str, folder: str) -> SparkSession:
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": f"{folder}/ware house",
        "spark.sql.catalogImplementation": "in-memory" if kind == "in-memory" else "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:{folder}/derby;create=true",
        "spark.sql.hive.convertMetastoreParquet": "true",
    }
    if kind == "connect":
        os.environ["SPARK_LOCAL_CONNECT"] = "1"
        builder = SparkSession.builder.remote("local[1]")
    else:
        builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def write(spark: SparkSession, folder: str, hive: bool) -> list[str]:
    """Creates the tables; returns the names of those that ranks can read."""
    spark.sql("create database shop")
    names = []
    for kind in ("parquet", "orc"):
        spark.sql(f"create table shop.flat_{kind} using {kind} as {ROWS.format(0, 60)}")
        spark.sql(f"create table shop.empty_{kind} using {kind} as {ROWS.format(0, 0)}")
        spark.sql(
            f"create table shop.days_{kind} using {kind} partitioned by (day, name) as "
            f"{ROWS.format(0, 60)}"
        )
        spark.sql(
            f"insert into shop.days_{kind} select id, x, s, on_day, n, day, name from "
            f"({ROWS.format(60, 90)})"
        )
        names += [f"shop.{what}_{kind}" for what in ("flat", "empty", "days")]
    spark.sql("alter table shop.flat_parquet add columns (more double)")
    if not hive:
        return names
    for kind in ("parquet", "orc"):
        name = f"shop.hive_{kind}"
        spark.sql(f"create table {name} ({COLUMNS}) partitioned by (Day date) stored as {kind}")
        spark.sql("set hive.exec.dynamic.partition.mode=nonstrict")
        spark.sql(
            f"insert into {name} select id, x, name, s, on_day, n, day from ({ROWS.format(0, 60)})"
        )
        spark.sql(
            f"alter table {name} add partition (Day='2030-01-01') "
            f"location '{folder}/else where {kind}'"
        )
        spark.sql(
            f"insert into {name} partition (Day='2030-01-01') select id, x, name, s, on_day, "
            f"n from ({ROWS.format(100, 110)})"
        )
        spark.sql(f"alter table {name} add partition (Day='2031-01-01')")
        names.append(name)
    return names


def rows_of(source: Any) -> list[dict[str, Any]]:
    splits = source.splits()
    found = [row for split in splits for batch in source.read(split) for row in batch.to_pylist()]
    return sorted(found, key=lambda row: row["id"])


def check(spark: SparkSession, folder: str, hive: bool) -> list[str]:
    wrong = []
    for name in write(spark, folder, hive):
        frame = spark.table(name)
        source = data.table(name).pin(spark)
        ours = rows_of(source)
        theirs = [row.asDict(recursive=True) for row in frame.orderBy("id").collect()]
        same = ours == theirs and source.schema().names == frame.columns
        some = data.table(name, ["n", "id"]).pin(spark)
        same &= rows_of(some) == [{"n": row["n"], "id": row["id"]} for row in theirs]
        print(f"{name}: {len(theirs)} rows, {'as Spark' if same else 'DIFFERENT'}", flush=True)
        if not same:
            wrong.append(name)
            print(source.schema(), ours[:2], theirs[:2], sep="\n", flush=True)
    return wrong + list(refused(spark))


def refused(spark: SparkSession) -> list[str]:
    """Tables that should be refused, but not with an error that names the table and a remedy."""
    spark.sql("create table shop.texts (a string) using csv")
    spark.sql("create view shop.seen as select * from shop.flat_parquet")
    wanted = {
        "shop.texts": "is of csv, which ranks cannot read",
        "shop.seen": "is of view, which ranks cannot read",
        "shop.none": "Spark has no table shop.none",
        "/tmp/x": "it is not a table name",
    }
    wrong = []
    for name, words in wanted.items():
        try:
            data.table(name).pin(spark)
            said = "nothing"
        except ValueError as error:
            said = str(error)
        print(f"{name} is refused: {said}", flush=True)
        if words not in said:
            wrong.append(name)
    return wrong


def main() -> None:
    kind = sys.argv[1]
    folder = tempfile.mkdtemp(prefix="hearth-catalogs-")
    os.chdir(folder)  # Derby writes its log there
    spark = session(kind, folder)
    try:
        print(f"Spark {spark.version}, catalog {kind}", flush=True)
        wrong = check(spark, folder, kind != "in-memory")
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    if wrong:
        sys.exit(f"not as it should be: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
