"""A main function for TensorFlow's feeds whose "model" is the list of the rows that it received.

It saves this model at intervals, and commits. After a restart it skips rows that a saved model of
an earlier start contains, because by contract an uncommitted partition is sent again completely. A
row that is received twice in one start is in the model twice.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counted_net import Tally


@dataclass(frozen=True)
class FeedPlan:
    """The nodes' parameters."""

    folder: str
    batch: int
    keep_every: int = 3  # batches
    pace_s: float = 0.01


def learn(plan: FeedPlan, ctx: Any) -> None:
    """Takes rows, and saves the model every few batches."""
    folder, name = Path(plan.folder), f"{ctx.job_name}{ctx.task_index}"
    kept = _kept_before(folder, ctx.restart_count)
    known = {row for rows in kept.values() for row in rows}
    mine = kept.get(name, [])
    life: list[int] = []
    given = open(folder / f"given-{ctx.restart_count:03d}-{name}", "w", encoding="utf-8")  # noqa: SIM115
    feed = ctx.get_data_feed()

    def keep() -> None:
        new = folder / f"new-{name}"
        new.write_text(json.dumps([ctx.restart_count, mine, life]), encoding="utf-8")
        os.replace(new, folder / f"model-{name}")
        feed.commit()

    batches = 0
    while not feed.should_stop():
        rows = [row if isinstance(row, int) else int(row[0]) for row in feed.next_batch(plan.batch)]
        given.write("".join(f"{row}\n" for row in rows))
        given.flush()
        life += [row for row in rows if row not in known]
        batches += 1
        if batches % plan.keep_every == 0:
            keep()
        time.sleep(plan.pace_s)
    keep()


def _kept_before(folder: Path, restart_count: int) -> dict[str, list[int]]:
    """The rows in each node's model, as saved by earlier starts."""
    kept = {}
    for file in folder.glob("model-*"):
        life, before, own = json.loads(file.read_text(encoding="utf-8"))
        kept[file.name.removeprefix("model-")] = before + (own if life < restart_count else [])
    return kept


def rows_given(folder: Path) -> int:
    """The number of rows delivered to the nodes so far, over all restarts."""
    return sum(file.read_bytes().count(b"\n") for file in folder.glob("given-*"))


def tally(folder: Path, rows: int, epochs: int) -> Tally:
    """Counts lost and doubled ids among 0 .. rows * epochs - 1."""
    learned: Counter[int] = Counter()
    for file in folder.glob("model-*"):
        _, before, own = json.loads(file.read_text(encoding="utf-8"))
        learned.update(before + own)
    return Tally(epochs, rows * epochs - len(learned), learned.total() - len(learned))
