#!/usr/bin/env python3
"""Resumes a dataset's loader in the middle of epoch 3, from spooled rows.

`bench/data_resume.py --json FILE`. Two ranks spool 100,000 images from a cached DataFrame. Each
reads half of epoch 3, saves the loader's state, and loads it into a new loader. Measures the
seconds until the slowest rank has its next batch, which must be the batch that the first loader
would have returned; the limit is one second. The images have 1 KB, so that all are cached.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import report

WORLD = 2
BATCH_SIZE = 32
LIMIT_S = 1.0


def resume(job: dict[str, Any], ctx: Any) -> None:
    """A rank's program; it writes the seconds of all rounds."""
    import json
    import time
    from pathlib import Path

    import torch

    def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
        return torch.equal(a["id"], b["id"]) and a["x"] == b["x"]

    options = {"batch_size": job["batch_size"], "shuffle": job["shuffle"]}
    loader = ctx.dataset("train", **options)
    loader.set_epoch(2)
    batches = iter(loader)
    for _ in range(len(loader) // 2):
        next(batches)
    state = loader.state_dict()
    expected = next(batches)
    found = []
    for _ in range(job["rounds"]):
        start = time.perf_counter()
        resumed = ctx.dataset("train", **options)
        resumed.load_state_dict(state)
        batch = next(iter(resumed))
        found.append(time.perf_counter() - start)
        if not same(batch, expected):
            raise ValueError(f"the resumed loader gave other rows: {batch['id']}")
    Path(job["folder"], f"{ctx.rank}.json").write_text(json.dumps(found))


def main() -> None:
    parser = report.arguments(__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    flags = parser.parse_args()
    from hearth.spark import session
    from hearth.torch import TorchCluster

    spark = session.start("bench-data-resume", executors=WORLD)
    x = "cast(repeat(cast(id % 10 as string), 1024) as binary)"
    frame = spark.sql(f"select {x} x, id from range(0, {flags.rows}, 1, {WORLD})").cache()
    frame.count()
    table = report.Report(flags.only)
    for shuffle in (True, "full"):
        with tempfile.TemporaryDirectory() as folder:
            job = {
                "batch_size": BATCH_SIZE,
                "shuffle": shuffle,
                "rounds": flags.rounds,
                "folder": folder,
            }
            TorchCluster.run(
                spark, resume, job, workers=WORLD, feeds=(), datasets={"train": frame}
            ).shutdown()
            ranks = [json.loads(file.read_text()) for file in Path(folder).glob("*.json")]
        table.add(
            f"resume/{flags.rows} images/{'window' if shuffle is True else shuffle}",
            ours=[max(seconds) for seconds in zip(*ranks, strict=True)],
            peer=[LIMIT_S],
            peer_name="the limit",
            unit="s",
            higher_is_better=False,
        )
    spark.stop()
    table.save(flags.json)


if __name__ == "__main__":
    main()
