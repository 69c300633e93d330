"""Kills trainings and feeds repeatedly: no row may be lost or counted twice.

`make soak` runs all parts, each in a separate process; docs/reliability.md has the latest table.
One part: `soak.py --only frames --kills 10 --seed 1 --json rows.json`; the table of a file:
`soak.py --table rows.json`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "spark"))

import conftest
import counted_feed
import frames
from counted_net import CountedNet, Tally
from fault_threads import FaultThread, FeedFaults, TrainingFaults
from standalone import StandaloneCluster

HERE = Path(__file__).resolve().parent
# Each part's share of all kills, and its shares of faults. There are few frozen trainers, because
# noticing one takes a heartbeat timeout (10 s). With Connect the executor is the server.
PARTS: dict[str, tuple[int, dict[str, int]]] = {
    "files": (12, {"trainer": 5, "worker": 3, "executor": 3, "frozen trainer": 1}),
    "frames": (40, {"trainer": 15, "worker": 12, "executor": 11, "frozen trainer": 2}),
    "standalone": (10, {"trainer": 4, "worker": 3, "executor": 3}),
    "connect": (14, {"trainer": 7, "worker": 6, "frozen trainer": 1}),
    "tensorflow": (24, {"executor": 12, "feed worker": 12}),
}
# The kinds of DataFrames that a part's trainings use in turn.
SOURCES = {
    "files": ("parquet",),
    "frames": ("repartition", "parquet", "groupBy", "sort"),
    "standalone": ("repartition",),
    "connect": ("repartition", "parquet"),
}
PARTITIONS, WORLD, BATCH, ROWS = 48, 2, 16, 6000
# The number of kills in one training (or cluster).
KILLS_AT_ONCE = 10
LIMITS_S = {"frozen trainer": 40.0}
LIMIT_S = 30.0
_PACE_S = 0.002  # per row of a feed


def kinds_of(part: str, kills: int, seed: int) -> list[str]:
    """Returns `kills` faults in the part's proportions, in random order."""
    shares = PARTS[part][1]
    total = sum(shares.values())
    kinds = [kind for kind, share in shares.items() for _ in range(round(kills * share / total))]
    kinds = (kinds + ["executor" if part == "tensorflow" else "trainer"] * kills)[:kills]
    random.Random(seed).shuffle(kinds)
    return kinds


def groups(kinds: list[str]) -> Iterator[list[str]]:
    """Divides the faults among trainings, about equally."""
    count = -(-len(kinds) // KILLS_AT_ONCE)
    for i in range(count):
        yield kinds[i::count]


def source_of(spark: Any, part: str, kind: str, net: CountedNet) -> Callable[[Any], Any]:
    """Returns a function that makes the training's source from a Config."""
    from hearth.caffeonspark import DataSource

    if part == "files":
        return lambda conf: DataSource(spark).getSource(conf, True)
    wanted = frames.Wanted(spark, net.folder.parent, ROWS, PARTITIONS)
    return lambda conf: DataSource(spark).fromDataFrame(conf, frames.KINDS[kind](wanted), True)


def train(spark: Any, source: Any, net: CountedNet, thread: TrainingFaults) -> str:
    """Trains with faults; returns the model's hash."""
    from hearth.caffeonspark import CaffeOnSpark

    conf = net.config(spark, clusterSize=str(WORLD), maxRestarts="100")
    with thread:
        CaffeOnSpark(spark, on_event=thread.on_event).train(source(conf))
    return hashlib.sha256((net.folder / "model.caffemodel").read_bytes()).hexdigest()


def attack_training(
    spark: Any, folder: Path, part: str, kinds: list[str], seed: int
) -> dict[str, Any]:
    """Runs the same training without and with faults."""
    kind = SOURCES[part][seed % len(SOURCES[part])]
    parquet = folder / "rows.parquet"
    if not parquet.exists():
        wanted = frames.Wanted(spark, folder, ROWS, 5)
        frames.KINDS["range"](wanted).write.parquet(str(parquet))
    settings = {"max_iter": 800 + 60 * len(kinds), "source": f"file:{parquet}"}
    net = CountedNet(folder / f"training-{seed}", ROWS, BATCH, **settings)
    source = source_of(spark, part, kind, net)
    unbroken = train(spark, source, net, TrainingFaults(net, WORLD, [], seed))
    unbroken_run = net.tally()
    net.clear()
    thread = TrainingFaults(net, WORLD, kinds, seed)
    same = train(spark, source, net, thread) == unbroken
    if not unbroken_run.exact:
        print(f"{kind}, without kills: {unbroken_run}", flush=True)
    return result(thread, net.tally(), same and unbroken_run.exact, kind)


def attack_feed(spark: Any, folder: Path, kinds: list[str], seed: int) -> dict[str, Any]:
    """Feeds a TensorFlow cluster that restarts, twice by an RDD of 48 partitions."""
    from tensorflowonspark import TFCluster

    folder = folder / f"feed-{seed}"
    folder.mkdir()
    rows, epochs, sc = max(1200, 400 * len(kinds)), 2, spark.sparkContext
    plan = counted_feed.FeedPlan(str(folder), batch=10)
    mode = TFCluster.InputMode.SPARK
    cluster = TFCluster.run(
        sc, counted_feed.learn, plan, WORLD, 0, input_mode=mode, restart=True
    )  # fmt: skip
    thread = FeedFaults(cluster, folder, kinds, seed)
    with thread:
        for epoch in range(epochs):
            ids = sc.parallelize(range(epoch * rows, (epoch + 1) * rows), PARTITIONS)
            cluster.train(ids.map(_slowly), num_epochs=1)
        cluster.shutdown()
    return result(thread, counted_feed.tally(folder, rows, epochs), True, "rdd")


def _slowly(row: int) -> int:
    """Sleeps for each row, so that feed tasks run until the end."""
    time.sleep(_PACE_S)
    return row


def result(thread: FaultThread, tally: Tally, same: bool, source: str) -> dict[str, Any]:
    """A training's record in the JSON file."""
    row = {
        "source": source,
        "recoveries": dict(thread.recoveries),
        "missed": dict(thread.missed),
        "error": repr(thread.error) if thread.error else "",
        "epochs": tally.epochs,
        "lost": tally.lost,
        "doubled": tally.doubled,
        "same": same,
    }
    print(json.dumps(row), flush=True)
    return row


def session(part: str, folder: Path, stack: ExitStack, master: str) -> Any:
    """The part's Spark session, which `stack` ends; on `master` if given."""
    if part == "connect":
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
        spark = builder.getOrCreate()
    else:
        from hearth.spark import session as spark_session

        if part == "standalone" and not master:
            master = stack.enter_context(StandaloneCluster(folder)).url
        spark = spark_session.start("hearth-soak", executors=WORLD, master=master or None)
    stack.callback(spark.stop)
    return spark


def run_part(part: str, kills: int, seed: int, master: str = "") -> dict[str, Any]:
    """Runs all trainings of a part."""
    os.environ.update([conftest.MARK.split("=")])
    # Executors must be able to import the recorder and the main function.
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(HERE), os.environ.get("PYTHONPATH")])
    )
    start = time.monotonic()
    trainings = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hearth-soak-")))
        spark = session(part, folder, stack, master)
        for i, kinds in enumerate(groups(kinds_of(part, kills, seed))):
            if part == "tensorflow":
                trainings.append(attack_feed(spark, folder, kinds, seed + i))
            else:
                trainings.append(attack_training(spark, folder, part, kinds, seed + i))
    seconds = time.monotonic() - start
    date = time.strftime("%Y-%m-%d")
    return {
        "part": part, "kills": kills, "seed": seed, "date": date, "seconds": seconds,
        "trainings": trainings,
    }  # fmt: skip


def is_well(run: dict[str, Any]) -> bool:
    """Whether every kill was survived in time and no row was lost or doubled."""
    return all(
        not training["missed"]
        and not training["error"]
        and training["lost"] == training["doubled"] == 0
        and training["same"]
        and all(
            max(times) <= LIMITS_S.get(kind, LIMIT_S)
            for kind, times in training["recoveries"].items()
        )
        for training in run["trainings"]
    )


def table(runs: list[dict[str, Any]]) -> str:
    """Two Markdown tables: rows by part, and seconds by fault."""
    by_fault: dict[tuple[str, str], list[float]] = defaultdict(list)
    lines = [
        "| part | kills | survived | rows lost | doubled | model of an unbroken run |",
        "|---|---|---|---|---|---|",
    ]
    for part in PARTS:
        mine = [t for run in runs if run["part"] == part for t in run["trainings"]]
        if not mine:
            continue
        times = [
            (kind, t) for one in mine for kind, all_ in one["recoveries"].items() for t in all_
        ]
        for kind, seconds in times:
            by_fault[part, kind].append(seconds)
        missed = sum(sum(one["missed"].values()) for one in mine)
        lost, doubled = (sum(one[name] for one in mine) for name in ("lost", "doubled"))
        same = f"{sum(one['same'] for one in mine)} of {len(mine)}"
        same = "" if part == "tensorflow" else same
        lines.append(
            f"| {part} | {len(times) + missed} | {len(times)} | {lost} | {doubled} | {same} |"
        )
    lines += [
        "",
        "| part | fault | times | seconds to recover: mean | most |",
        "|---|---|---|---|---|",
    ]
    for (part, kind), seconds in by_fault.items():
        mean = sum(seconds) / len(seconds)
        lines.append(f"| {part} | {kind} | {len(seconds)} | {mean:.1f} | {max(seconds):.1f} |")
    return "\n".join(lines)


def run_all(flags: argparse.Namespace) -> bool:
    """Runs each part in a separate process, because a process has only one Spark session."""
    well = True
    for part, (share, _) in PARTS.items():
        kills = round(share * flags.kills / sum(share for share, _ in PARTS.values()))
        command = [sys.executable, __file__, "--only", part, "--kills", str(kills)]
        command += ["--seed", str(flags.seed), "--json", flags.json]
        well = subprocess.run(command, check=False).returncode == 0 and well
    print(table(read(flags.json)))
    return well


def read(path: str) -> list[dict[str, Any]]:
    return json.loads(Path(path).read_text(encoding="utf-8")) if Path(path).exists() else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="one part; all of them otherwise")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--json", default="", help="a file that the results are added to")
    parser.add_argument("--master", default="", help="a Spark master that runs already")
    parser.add_argument("--table", metavar="JSON", help="show what a file has gathered")
    flags = parser.parse_args()
    if flags.table:
        print(table(read(flags.table)))
        return 0
    if not flags.only:
        with tempfile.TemporaryDirectory() as folder:
            flags.json = flags.json or os.path.join(folder, "soak.json")
            return 0 if run_all(flags) else 1
    print(f"part {flags.only}, {flags.kills} kills, seed {flags.seed}", flush=True)
    run = run_part(flags.only, flags.kills, flags.seed, flags.master)
    if flags.json:
        Path(flags.json).write_text(json.dumps([*read(flags.json), run], indent=1))
    print(table([run]))
    print(f"well: {is_well(run)}; {run['seconds']:.0f} s")
    return 0 if is_well(run) else 1


if __name__ == "__main__":
    sys.exit(main())
