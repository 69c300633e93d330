"""One training, many random kills: the model must be the one of a training that nobody struck.

`make soak` runs it; docs/reliability.md keeps the last table. With --standalone the executors
belong to a Master and two Workers started here, else to a local-cluster.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "spark"))

import conftest
import faults
from standalone import StandaloneCluster

from hearth import spark_session
from hearth.caffeonspark import CaffeOnSpark, DataSource

# Shares of the kinds; a frozen trainer takes a heartbeat (10 s) to notice.
SHARES = {"trainer": 11, "worker": 9, "executor": 7, "frozen trainer": 3}
LIMITS_S = {"frozen trainer": 30.0}
LIMIT_S = 20.0


class Soak:
    """An `on_event` that strikes again and again until `kinds` are used up."""

    def __init__(self, kinds: list[str], seed: int):
        self._kinds = kinds
        self._random = random.Random(seed)
        self._next_at: int | None = None
        self._struck: tuple[str, float] | None = None
        self.recoveries: dict[str, list[float]] = defaultdict(list)
        self.missed: Counter[str] = Counter()
        self.hash = ""

    def __call__(self, event: dict[str, Any]) -> None:
        kind = event.get("event")
        if kind == "done":
            self.hash = event["weights_sha256"]
        elif kind == "restart":
            self._next_at = None
            print(f"{event['reason']}", flush=True)
        elif kind == "progress":
            self._on_progress(event["iteration"])

    def _on_progress(self, iteration: int) -> None:
        if self._struck is not None and self._next_at is None:
            name, at = self._struck
            self.recoveries[name].append(time.monotonic() - at)
            self._struck = None
        if self._next_at is None:
            self._next_at = iteration + self._random.randint(1, 60)
        elif iteration >= self._next_at and self._kinds and self._struck is None:
            self._strike()

    def _strike(self) -> None:
        striker = faults.Striker(self._kinds.pop(), 0, self._random.randint(0, 1))
        striker.strike()
        if striker.landed:
            self._struck = (striker.kind, striker.struck_at)
        else:
            self.missed[striker.kind] += 1


def kinds_of(kills: int, seed: int) -> list[str]:
    """`kills` faults in the shares above, in random order."""
    total = sum(SHARES.values())
    kinds = [kind for kind, share in SHARES.items() for _ in range(round(kills * share / total))]
    kinds = (kinds + ["trainer"] * kills)[:kills]
    random.Random(seed).shuffle(kinds)
    return kinds


def train(spark: Any, conf: Any, on_event: Any) -> None:
    CaffeOnSpark(spark, on_event=on_event).train(DataSource(spark).getSource(conf, True))


def report(soak: Soak, seconds: float, right: bool) -> bool:
    """Prints the table; whether all is well."""
    well = right and not soak.missed
    print("| fault | times | survived | seconds to recover: mean | most |\n|---|---|---|---|---|")
    for kind, times in sorted(soak.recoveries.items()):
        mean = sum(times) / len(times)
        print(f"| {kind} | {len(times) + soak.missed[kind]} | {len(times)} | {mean:.1f} "
              f"| {max(times):.1f} |")  # fmt: skip
        well = well and max(times) <= LIMITS_S.get(kind, LIMIT_S)
    print(f"model right: {right}; {seconds:.0f} s in all; kills that missed: {dict(soak.missed)}")
    return well


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--iterations", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--standalone", action="store_true")
    flags = parser.parse_args()
    print(f"seed {flags.seed}", flush=True)
    os.environ.update([conftest.MARK.split("=")])
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hearth-soak-")))
        master = stack.enter_context(StandaloneCluster(folder)).url if flags.standalone else None
        spark = spark_session.start("hearth-soak", executors=2, master=master)
        stack.callback(spark.stop)
        digits = conftest.Digits(folder)
        settings = {"max_iter": flags.iterations, "snapshot": 20, "random_seed": 5, "display": 100}
        solvers = [digits.solver("cos", **settings) for _ in range(2)]
        confs = [
            digits.config(spark, solver, clusterSize="2", maxRestarts=str(flags.kills + 5))
            for solver in solvers
        ]
        unbroken, soak = Soak([], 0), Soak(kinds_of(flags.kills, flags.seed), flags.seed)
        train(spark, confs[0], unbroken)
        start = time.monotonic()
        train(spark, confs[1], soak)
        seconds = time.monotonic() - start
        survived = sum(map(len, soak.recoveries.values()))
        right = soak.hash == unbroken.hash != "" and survived == flags.kills
        return 0 if report(soak, seconds, right) else 1


if __name__ == "__main__":
    sys.exit(main())
