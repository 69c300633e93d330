"""DataFrames of tables: a run reads one version while the table changes.

run.py calls check(). Prints a line for each DataFrame and training.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from hearth.cluster.errors import ClusterError
from hearth.sources.tables.frames import frame_identity, pinned_frame
from hearth.torch import TorchCluster

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # nodes cannot import this module
_DEADLINE_S = 300.0


@dataclass(frozen=True)
class Kind:
    """A kind of table: its name in SQL, its word for a version, and its reader."""

    system: str
    table: str
    load: Callable[[], DataFrame]
    at: Callable[[Any], DataFrame]
    newest: Callable[[], Any]

    def version(self) -> str:
        return f"{self.system} {self.newest()}"


def kinds(spark: SparkSession, warehouse: str) -> list[Kind]:
    path, name = f"{warehouse}/fra mes%20", "ice.db.frames"
    delta = f"delta.`{path}`"
    newest = f"select snapshot_id from {name}.refs where name = 'main'"
    return [
        Kind(
            "Delta version",
            delta,
            lambda: spark.read.format("delta").load(path),
            lambda version: spark.read.format("delta").option("versionAsOf", version).load(path),
            lambda: spark.sql(f"describe history {delta} limit 1").collect()[0][0],
        ),
        Kind(
            "Iceberg snapshot",
            name,
            lambda: spark.table(name),
            lambda version: spark.read.option("snapshot-id", version).table(name),
            lambda: spark.sql(newest).collect()[0][0],
        ),
    ]


def write(spark: SparkSession, kind: Kind) -> None:
    using = kind.system.split()[0].lower()
    spark.sql(f"create or replace table {kind.table} using {using} as {numbers(0, 100)}")


def numbers(begin: int, end: int) -> str:
    return f"select id, float(id) x, string(id % 3) name from range({begin}, {end}, 1, 2)"


def changes(kind: Kind) -> dict[str, str]:
    """Statements that create another version, to be run in this order."""
    return {
        "append": f"insert into {kind.table} {numbers(100, 150)}",
        "delete": f"delete from {kind.table} where id % 7 = 3",
        "overwrite": f"insert overwrite {kind.table} {numbers(500, 520)}",
    }


def rows_of(frame: DataFrame) -> list[Any]:
    return sorted(tuple(row) for row in frame.select("*").collect())


def shapes(spark: SparkSession, kind: Kind) -> dict[str, DataFrame]:
    """DataFrames that read the table."""
    frame = kind.load()
    frame.createOrReplaceTempView("seen")
    return {
        "the table": frame,
        "its name": spark.table(kind.table),
        "filtered": frame.where("id % 2 = 0").select("x", "id"),
        "joined with itself": frame.join(frame.select("id", "name"), "id").selectExpr("id", "x"),
        "a union": frame.union(frame.where("id < 10")),
        "a view with a query": spark.sql("with a as (select * from seen) select id, x from a"),
        "grouped": frame.groupBy("name").count(),
    }


def check_frames(spark: SparkSession, kind: Kind) -> Iterator[str]:
    """Yields the changes after which a pinned frame reads different rows."""
    for change in changes(kind):
        write(spark, kind)
        if change == "overwrite":
            spark.sql(changes(kind)["append"])
        version = kind.version()
        made = shapes(spark, kind) if change == "append" else {"the table": kind.load()}
        pinned = {name: pinned_frame(frame) for name, frame in made.items()}
        before = {name: rows_of(frame) for name, (frame, _) in pinned.items()}
        spark.sql(changes(kind)[change])
        for name, (frame, versions) in pinned.items():
            same = rows_of(frame) == before[name] and list(versions.values()) == [version]
            same &= version in frame_identity(frame) and frame.schema == made[name].schema
            # Pins the frame again, like a restarted driver.
            again, _ = pinned_frame(shapes(spark, kind)[name], versions)
            same &= rows_of(again) == before[name]
            same &= frame_identity(again) == frame_identity(frame)
            now, _ = pinned_frame(shapes(spark, kind)[name])
            differs = rows_of(now) != before[name]
            differs &= frame_identity(now) != frame_identity(frame)
            what = f"{kind.system}, {change}: {name}"
            print(f"{what}: {'pinned' if same and differs else 'NOT PINNED'}", flush=True)
            if not (same and differs):
                yield what


def check_refusals(spark: SparkSession, kind: Kind) -> Iterator[str]:
    """A missing version or other columns cause a one-line error; a frame that Spark caches is not
    changed.
    """
    write(spark, kind)
    frame, versions = pinned_frame(kind.load())
    spark.sql(f"alter table {kind.table} add columns (more double)")
    spark.sql(f"insert into {kind.table} select *, 1.5 from ({numbers(0, 3)})")
    (uri,) = versions
    wanted = {
        f"{kind.system} 77": f"{kind.system} 77 of {uri}, which the run read before its restart",
        versions[uri]: "column 'more' has the type double in the DataFrame",
    }
    for version, words in wanted.items():
        said = _error(lambda: pinned_frame(kind.load(), {uri: version}))  # noqa: B023
        print(f"{version} is refused: {said}", flush=True)
        if words not in said or "\n" in said:
            yield f"{kind.system}: no refusal of {version}"
    if rows_of(pinned_frame(frame, versions)[0]) != rows_of(frame):
        yield f"{kind.system}: a frame of fewer columns"
    named = kind.at(versions[uri].split()[-1])
    by_sql = spark.sql(f"select * from {kind.table} version as of {versions[uri].split()[-1]}")
    for given in (named, by_sql):
        found, others = pinned_frame(given, {uri: kind.version()})
        if found is not given or others or versions[uri] not in frame_identity(given):
            yield f"{kind.system}: a version that the program names: {frame_identity(found)}"
    kept = kind.load().cache()
    kept.count()
    if pinned_frame(kept) != (kept, {}):
        yield f"{kind.system}: a frame that Spark keeps"
    kept.unpersist()
    if kind.system == "Iceberg snapshot":
        files = spark.table(f"{kind.table}.files")
        if pinned_frame(files) != (files, {}):
            yield f"{kind.system}: a table of metadata"


def _error(work: Callable[[], Any]) -> str:
    try:
        work()
    except (ValueError, ClusterError) as error:
        return str(error)
    return "nothing"


def two_epochs(folder: str, ctx: Any) -> None:
    """Notes the rows of each epoch. After the first epoch it waits until the table changes, then
    dies once.
    """
    import torch

    model = torch.nn.Linear(1, 1)
    loader = ctx.dataset("train", batch_size=20, columns=("id", "x"))
    if ctx.restore(model=model, data=loader) is None:
        ctx.checkpoint(0, model=model, data=loader)
    while loader.epoch < 2:
        epoch = loader.epoch
        ids = [int(i) for batch, _ in loader for i in batch]
        Path(folder, f"epoch{epoch}-{ctx.restart_count}").write_text(json.dumps(sorted(ids)))
        if ctx.restart_count == 0:
            await_file(Path(folder, "changed"))
            ctx.checkpoint(1, model=model, data=loader)
            os.kill(os.getpid(), signal.SIGKILL)


def next_epoch(folder: str, ctx: Any) -> None:
    """Continues from the checkpoint, and notes the rows of an epoch."""
    import torch

    loader = ctx.dataset("train", batch_size=20, columns=("id", "x"))
    ctx.restore(model=torch.nn.Linear(1, 1), data=loader)
    ids = [int(i) for batch, _ in loader for i in batch]
    Path(folder, "again").write_text(json.dumps(sorted(ids)))


def await_file(path: Path) -> None:
    end = time.monotonic() + _DEADLINE_S
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(f"{path} was not made within {_DEADLINE_S:g} s")
        time.sleep(0.05)


def check_training(spark: SparkSession, kind: Kind, folder: Path) -> Iterator[str]:
    """Checks a table that changes between two epochs, a killed rank, and then another driver."""
    folder.mkdir()
    write(spark, kind)
    version = kind.version()
    options: dict[str, Any] = {"workers": 1, "checkpoint_dir": f"file://{folder}/kept"}
    start = partial(TorchCluster.run, spark, args=str(folder), **options)
    cluster = start(main_fun=two_epochs, restart=True, datasets={"train": kind.load()})
    await_file(folder / "epoch0-0")
    for change in changes(kind).values():
        spark.sql(change)
    (folder / "changed").touch()
    cluster.shutdown()
    found = {file.name: json.loads(file.read_text()) for file in folder.glob("epoch*")}
    identity = cluster.datasets.plans["train"].identity
    print(f"{kind.system}, training: epochs {sorted(found)}, {identity}", flush=True)
    if found != {"epoch0-0": list(range(100)), "epoch1-1": list(range(100))}:
        yield f"{kind.system}: rows of the training: {found}"
    again = start(main_fun=next_epoch, datasets={"train": kind.load()})
    again.shutdown()
    same = again.datasets.plans["train"].identity == identity and version in identity
    if not same or json.loads((folder / "again").read_text()) != list(range(100)):
        yield f"{kind.system}: another driver has {again.datasets.plans['train'].identity}"
    # If the program names a version, that version counts; here it differs from the checkpoints'
    # version.
    named, _ = pinned_frame(kind.load())
    given = {"train": named}
    said = _error(lambda: start(main_fun=next_epoch, datasets=given).shutdown())
    print(f"{kind.system}, other rows: {said[-600:]}", flush=True)
    if version not in said or kind.version() not in said:
        yield f"{kind.system}: no refusal of another version"


def check(spark: SparkSession, warehouse: str) -> list[str]:
    """Runs all checks; returns the failures."""
    wrong: list[str] = []
    for kind in kinds(spark, warehouse):
        wrong += check_frames(spark, kind)
        wrong += check_refusals(spark, kind)
        wrong += check_training(spark, kind, Path(warehouse, kind.system.split()[0]))
    return wrong
