"""Random deliveries of datasets: sends three frames to two ranks while tasks fail, are killed, or
are so slow that Spark speculates; counts rows lost and doubled.

All runs share a Master and two Workers with different addresses, because Spark starts no second
copy of a task on the same host. The second Worker's Python has another host name, so its tasks send
rows over TCP to the ranks on the first one. `deliveries.py --seeds 5 17` repeats two runs, `--runs
12` does 12 new ones. An executor has one slot, so datasets are sent one by one; `--slots` allows
more.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "spark"))

import conftest
from random_faults import SPECULATION
from standalone import StandaloneCluster, WorkerHost

HERE = Path(__file__).resolve().parent
RANKS, EPOCHS = 2, 2
TEXT_BYTES = 40_000
ORDERS = ("at once", "last first")
_FAULTS = ("", "", "", "fails", "is killed", "is slow")
_SLOW_S = 3.0
SECOND_HOST = "127.0.0.2"
# The host name decides whether rows use shared memory or TCP.
_HOST_NAMES = f"""
import os, socket
if os.environ.get("SPARK_LOCAL_IP") == "{SECOND_HOST}":
    socket.gethostname = lambda: "second"
"""


@dataclass(frozen=True)
class Run:
    """The rows to deliver, and how the program reads them."""

    seed: int
    order: str  # in which the program reads the datasets
    rows: int
    partitions: int
    arrow_rows: int  # per batch that Spark passes on


def run_of(seed: int) -> Run:
    """The run that a seed determines."""
    r = random.Random(seed)
    return Run(
        seed=seed,
        order=r.choice(ORDERS),
        rows=r.randint(100, 400),
        partitions=r.choice((7, 48, 96)),
        arrow_rows=r.choice((1, 3, 1000)),
    )


def with_faults(seed: int, folder: str, batches: Iterator[Any]) -> Iterator[Any]:
    """The batches of a partition; its first attempt may fail, be killed or be slow in the middle.

    Each attempt creates a file "PARTITION-ATTEMPT" in `folder`.
    """
    from pyspark import TaskContext

    task = TaskContext.get()
    partition, attempt = task.partitionId(), task.attemptNumber()
    chance = random.Random(f"{seed} {partition}")
    fault, fails_at = "" if attempt else chance.choice(_FAULTS), chance.choice((0, 1))
    Path(folder, f"{partition}-{attempt}").touch()
    for number, batch in enumerate(batches):
        half = max(1, batch.num_rows // 2)
        yield batch.slice(0, half)
        if number == fails_at and fault == "is killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif number == fails_at and fault == "fails":
            raise RuntimeError("the first attempt")
        elif number == fails_at and fault == "is slow":
            time.sleep(_SLOW_S)
        yield batch.slice(half)


def take_all(job: tuple[str, str], ctx: Any) -> None:
    """Reads all three datasets and notes the ids: two epochs of "train" during one of "pairs", with
    complete evaluations in between. With "last first" it begins with the last dataset.
    """
    import torch.distributed as dist

    folder, order = job
    dist.init_process_group(ctx.backend)
    seen: dict[str, list[list[int]]] = {"train": [], "pairs": [[]], "eval": []}

    def evaluate() -> None:
        loader = ctx.dataset("eval", 11, shuffle=False, uneven="weight")
        seen["eval"].append([i for batch in loader for i in counted(batch)])

    def counted(batch: Any) -> list[int]:
        return batch["id"][batch["row_weight"] > 0].tolist()

    if order == "last first":
        evaluate()
    pairs = ctx.dataset("pairs", 5, shuffle="full", uneven="weight")
    beside = iter(pairs)
    train = ctx.dataset("train", 7, uneven="weight", seed=3, workers=2, prefetch=5)
    for _ in range(EPOCHS):
        seen["train"].append([])
        for step, batch in enumerate(train):
            assert all(len(text) == TEXT_BYTES for text in batch["text"])
            seen["train"][-1] += counted(batch)
            seen["pairs"][0] += counted(other) if (other := next(beside, None)) else []
            if step % 9 == 4:
                evaluate()
                ctx.reduce_metrics({"rows": float(len(batch["id"]))}, weight=len(batch["id"]))
    for other in beside:
        seen["pairs"][0] += counted(other)
    Path(folder, f"rank-{ctx.rank}").write_text(json.dumps(seen))


def frames_of(run: Run, spark: Any, folder: Path) -> dict[str, Any]:
    """Rows of 40 KB with faults, a frame with faults before its shuffle, and 200 partitions."""
    faults = []
    for name in ("train", "pairs"):
        (folder / name).mkdir()
        faults.append(partial(with_faults, run.seed, str(folder / name)))
    train = spark.range(0, run.rows, 1, run.partitions)
    train = train.selectExpr("id", f"repeat(string(id % 10), {TEXT_BYTES}) text")
    pairs = spark.range(0, 1000, 1, 12).where("id < 40 or id > 900")
    return {
        "train": train.mapInArrow(faults[0], train.schema),
        "pairs": pairs.mapInArrow(faults[1], pairs.schema).repartition(19),
        "eval": spark.range(0, 101, 1, 200).where("id % 3 > 0"),
    }


EXPECTED: dict[str, Callable[[Run], set[int]]] = {
    "train": lambda run: set(range(run.rows)),
    "pairs": lambda run: {*range(40), *range(901, 1000)},
    "eval": lambda run: {i for i in range(101) if i % 3},
}


def deliver(run: Run, spark: Any, folder: Path) -> dict[str, int]:
    """Delivers and reads; counts rows lost and doubled in all epochs, and repeated attempts."""
    from hearth.torch import TorchCluster

    folder.mkdir()
    folder.chmod(0o777)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(run.arrow_rows))
    datasets = frames_of(run, spark, folder)
    job = (str(folder), run.order)
    TorchCluster.run(spark, take_all, job, RANKS, datasets=datasets).shutdown()
    ranks = [json.loads((folder / f"rank-{rank}").read_text()) for rank in range(RANKS)]
    found = Counter(lost=0, doubled=0)
    for name, expected in EXPECTED.items():
        rows = expected(run)
        for parts in zip(*(rank[name] for rank in ranks), strict=True):
            ids = Counter(i for part in parts for i in part)
            found["lost"] += len(rows - set(ids))
            found["doubled"] += ids.total() - len(rows & set(ids))
    found["again"] = sum(not file.name.endswith("-0") for file in folder.glob("*/*-*"))
    return dict(found)


def run_all(seeds: Iterable[int], slots: int) -> Iterator[tuple[Run, dict[str, Any]]]:
    """Yields the results of each run on two executors with `slots` slots."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hearth-deliveries-")))
        site = folder / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(_HOST_NAMES)
        os.environ["PYTHONPATH"] = os.pathsep.join((str(site), str(HERE)))
        hosts = [WorkerHost("127.0.0.1"), WorkerHost(SECOND_HOST)]
        conf = {**SPECULATION, "spark.task.maxFailures": "8"}
        cluster = StandaloneCluster(folder, hosts, cores=slots, conf=conf)
        stack.enter_context(cluster)
        from hearth.spark import session

        spark = session.start("hearth-deliveries", executors=2, master=cluster.url)
        stack.callback(spark.stop)
        for seed in seeds:
            try:
                yield run_of(seed), deliver(run_of(seed), spark, folder / f"run-{seed}")
            except Exception as error:
                yield run_of(seed), {"error": repr(error)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*")
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--slots", type=int, default=1, help="of each of the two executors")
    flags = parser.parse_args()
    first = int(time.time())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the Workers end, too
    os.environ.update([conftest.MARK.split("=")])
    total = Counter(runs=0, errors=0, lost=0, doubled=0)
    for run, found in run_all(flags.seeds or range(first, first + flags.runs), flags.slots):
        print(f"{run}: {json.dumps(found)}", flush=True)
        total.update(runs=1, errors="error" in found)
        total.update({key: count for key, count in found.items() if key != "error"})
    print(json.dumps(total))
    return 1 if total["lost"] or total["doubled"] or total["errors"] else 0


if __name__ == "__main__":
    sys.exit(main())
