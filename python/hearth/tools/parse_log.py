"""Reads training logs in Caffe's format.

`hearth parse_log LOG FOLDER` runs this module as a program: it writes FOLDER/LOG.train and
FOLDER/LOG.test as CSV, with the columns of Caffe's parse_log.py.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

_NUMBER = r"([-+]?(?:[\d.]+(?:[eE][-+]?\d+)?|nan|inf))"
_TIME = re.compile(r"^[IWEF](\d{4})?(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6})")
_ITERATION = re.compile(r"Iteration (\d+)")
_LOSS = re.compile(rf"Iteration \d+(?: \([^)]*\))?, loss = {_NUMBER}")
_RATE = re.compile(rf"Iteration \d+, lr = {_NUMBER}")
_TEST = re.compile(r"Iteration \d+, Testing net \(#(\d+)\)")
_OUTPUT = re.compile(rf"(Train|Test) net output #\d+: (\S+) = {_NUMBER}( \(\* .* loss\))?")


@dataclass
class Row:
    """A log's values of one iteration in one phase."""

    iteration: int
    seconds: float  # since "Solving"; NaN if the log has no times
    loss: float | None = None  # over average_loss iterations; TRAIN only
    learning_rate: float | None = None  # TRAIN only
    outputs: dict[str, float] = field(default_factory=dict)


@dataclass
class TrainingLog:
    """A log's rows in file order, for training and for each test net."""

    train: list[Row] = field(default_factory=list)
    test: dict[int, list[Row]] = field(default_factory=dict)
    loss_names: set[str] = field(default_factory=set)  # outputs that are part of the loss


class _Clock:
    """Seconds since the "Solving" line, by the lines' timestamps."""

    def __init__(self) -> None:
        self._start: datetime | None = None
        self._last: datetime | None = None
        self._turned = timedelta()  # years passed since the first line
        self.seconds = float("nan")

    def read(self, line: str) -> None:
        match = _TIME.match(line)
        if not match:
            return
        year, *rest = (int(group or 0) for group in match.groups())
        # Most logs omit the year. Assumes 2000, a leap year, because a log may contain 29 February.
        now = datetime(year or 2000, *rest) + self._turned
        if self._last and not year and self._last - now > timedelta(days=1):
            self._turned += timedelta(days=366)
            now += timedelta(days=366)
        self._last = now
        if self._start is None or "Solving " in line:
            self._start = now
        self.seconds = (now - self._start).total_seconds()


def read_log(lines: Iterable[str]) -> TrainingLog:
    """Parses the lines of one log; skips lines that Caffe did not write."""
    log = TrainingLog()
    clock = _Clock()
    tests: list[Row] = []  # rows of the last tested net
    for line in lines:
        clock.read(line)
        found = _ITERATION.search(line)
        iteration = int(found[1]) if found else -1
        if match := _TEST.search(line):
            tests = log.test.setdefault(int(match[1]), [])
            tests.append(Row(iteration, clock.seconds))
        elif match := _LOSS.search(line):
            log.train.append(Row(iteration, clock.seconds, loss=float(match[1])))
        elif match := _RATE.search(line):
            if log.train and log.train[-1].iteration == iteration:
                log.train[-1].learning_rate = float(match[1])
        elif match := _OUTPUT.search(line):
            if rows := log.train if match[1] == "Train" else tests:
                rows[-1].outputs[match[2]] = float(match[3])
            if match[4]:
                log.loss_names.add(match[2])
    return log


def write_csv(rows: Sequence[Row], path: Path, delimiter: str = ",") -> None:
    """Writes NumIters, Seconds, LearningRate and the outputs, one row per iteration.

    As in Caffe, a test's row has the learning rate that was displayed last before the test.
    """
    names = list(dict.fromkeys(name for row in rows for name in row.outputs))
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["NumIters", "Seconds", "LearningRate", *names])
        for row in rows:
            rate = "nan" if row.learning_rate is None else row.learning_rate
            values = [row.outputs.get(name, "") for name in names]
            writer.writerow([row.iteration, row.seconds, rate, *values])


def _with_rates(log: TrainingLog, rows: Sequence[Row]) -> list[Row]:
    """The test rows, with the learning rate of the training at the time of the test."""
    rates = [(row.iteration, row.learning_rate) for row in log.train if row.learning_rate]
    for row in rows:
        known = [rate for iteration, rate in rates if iteration <= row.iteration]
        row.learning_rate = known[-1] if known else None
    return list(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the CSV files. Prints an error in one line on stderr, and returns status 1."""
    parser = argparse.ArgumentParser(prog="hearth parse_log", description=__doc__.splitlines()[0])
    parser.add_argument("log", type=Path, help="log of a training")
    parser.add_argument("folder", type=Path, help="output folder of LOG.train and LOG.test")
    parser.add_argument("--delimiter", default=",", help="between columns (default: a comma)")
    options = parser.parse_args(arguments)
    try:
        log = read_log(options.log.read_text(errors="replace").splitlines())
        tables = {"train": [row for row in log.train if row.learning_rate is not None]}
        for index, rows in sorted(log.test.items()):
            tables["test" if index == 0 else f"test_{index}"] = _with_rates(log, rows)
        tables.setdefault("test", [])
        for kind, rows in tables.items():
            path = options.folder / f"{options.log.name}.{kind}"
            write_csv(rows, path, options.delimiter)
            print(f"Wrote {path}")
    except OSError as error:
        print(f"hearth parse_log: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
