#!/usr/bin/env python3
"""Datasets of two ranks against Ray Data, petastorm, mosaicml-streaming, torch and pyarrow.

`bench/data.py --json FILE --markdown FILE`. Each contender has a process and an environment
(data_environments.py) and reads the same rows: a DataFrame cached by its Spark session, or Parquet
files. All processes live through a case, SOURCE/SHAPE/SHUFFLE, and run in turn: two ranks, two
epochs, each batch read. The time in which a peer writes the rows counts. Figures of a run:

first batch   seconds to write the rows, and from when the slowest rank has imported its packages
              until it has a batch
call          seconds from the call until the slowest rank has a batch, with the start of the ranks
epoch 1       rows per second, timed like `first batch` but until the slowest rank's epoch ends
epoch 2       rows per second
job cpu       processor seconds of all processes, from the call to its end
epoch 1 cpu   processor seconds to write the rows, and from the first rank's start to epoch 1's end
epoch 2 cpu   processor seconds of epoch 2

All rows of both epochs are checked by their ids and a sum over their values; the table shows a
peer's missing and repeated rows. `--fewer 50 --rounds 1` is a trial on few rows. With `--limit
MINUTES` a row stops after its share of the time, but not before one round has finished.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import data_rows
import data_table
import report
from data_case import SOURCES, Case, prepare

MODES = ("window", "full")
DEFAULT = ("hearth", "ray", "petastorm", "mds", "loader", "loop", "look", "unspooled")


class Bench:
    """Runs all requested cases in one thread."""

    def __init__(self, flags: argparse.Namespace):
        self._flags = flags
        self._until = time.monotonic() + flags.limit * 60
        self._table = report.Report()
        self._runs: list[dict[str, Any]] = []
        self._sections: list[str] = []
        wanted = report.Report(flags.only).wants
        self._left = [
            (source, shape, mode)
            for source in SOURCES
            for shape in data_rows.SHAPES
            for mode in flags.modes.split(",")
            if wanted(f"{source}/{shape}/{mode}")
        ]

    def run(self) -> None:
        """Runs the cases. Processes live through all kinds of shuffle of one source and shape."""
        while self._left:
            source, shape, _ = self._left[0]
            # Ray's last processes may still write to the folder.
            options = {"prefix": "hearth-bench-", "ignore_cleanup_errors": True}
            with tempfile.TemporaryDirectory(**options) as folder:
                shown = data_rows.SHAPES[shape].fewer(self._flags.fewer)
                case = Case(f"{source}/{shape}", source, shown, Path(folder))
                with case.running(self._flags.contenders.split(",")):
                    while self._left and self._left[0][:2] == (source, shape):
                        self._rounds(case, self._left[0][2])
                        self._left.pop(0)

    def _rounds(self, case: Case, mode: str) -> None:
        """Runs the requested rounds, or as many as fit into this row's share of the time."""
        now = time.monotonic()
        until = now + (self._until - now) / len(self._left)
        name = f"{case.name}/{mode}"
        own = []
        rounds = self._flags.rounds
        for turn in range(rounds == 1, rounds + 1):  # the first of several rounds is a warm-up
            if turn > 1 and time.monotonic() > until:
                break
            for run in case.turn(mode):
                shown = {k: round(v, 3) for k, v in run.items() if isinstance(v, float)}
                print(f"{name} {turn} {run['contender']}: {shown} {run['checks']}", file=sys.stderr)
                if turn > 0:
                    own.append({"case": name, "round": turn, **run})
        self._runs += own
        data_table.add_rows(self._table, name, own)
        self._sections.append(data_table.summary(name, own, case.failed))
        self._save()

    def _save(self) -> None:
        """Written after each row, so that an interrupt loses no finished row."""
        if self._flags.markdown:
            self._flags.markdown.write_text("\n".join(self._sections))
        if self._flags.json:
            found = {"rows": self._table.rows, "runs": self._runs}
            self._flags.json.write_text(json.dumps(found, indent=1) + "\n")


def main() -> None:
    parser = report.arguments(__doc__.splitlines()[0])
    parser.add_argument("--markdown", type=Path, help="where to write the tables")
    parser.add_argument("--fewer", type=int, default=1, help="divide numbers of rows by this")
    parser.add_argument("--limit", type=float, default=90.0, help="minutes (default: 90)")
    parser.add_argument("--contenders", default=",".join(DEFAULT), help="by comma")
    parser.add_argument("--modes", default=",".join(MODES), help="kinds of shuffle (none, too)")
    flags = parser.parse_args()
    prepare(flags.contenders.split(","))
    Bench(flags).run()


if __name__ == "__main__":
    main()
