#!/usr/bin/env python3
"""A DDP program on a cached DataFrame: Hearth, TorchDistributor, Ray Train, petastorm, Mosaic.

`bench/rivals.py --json FILE --markdown FILE --plot FILE`. The programs (rival_models.py) are the
same for all: an MLP on 784 floats, a small CNN on 150 KB JPEGs that it decodes, a transformer of
six layers on token ids; two ranks of one thread, three epochs. Each contender has a process, an
environment (data_environments.py), and a Spark session that has cached the frame. The time in which
it writes the rows counts. The contenders run in turn. Figures of a run:

first step    seconds from the call until the slowest rank has done its first step
epoch 1       rows per second, timed from the slowest rank's imports on, plus the time of writing
epoch 3       rows per second
job           seconds of the whole call
memory        MB: peak of all processes' proportional set sizes, without Spark's JVMs
written       MB that all processes wrote to disk

Not peers are `memory`, a loop over the same bytes in the ranks' memory, and `bare`, two ranks with
the model and without rows. All rows of all epochs are checked by their ids.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import data_table
import footprint
import marked_processes
import report
from data_case import Case, Side, free_port, prepare
from data_rows import IMAGE_BYTES, Shape

EPOCHS = 3
SHAPES = {
    "mlp": Shape(40_000, 100, 4_096, 784, "float", 2_048),
    "cnn": Shape(4_000, 32, 512, IMAGE_BYTES, "image", 64),
    "transformer": Shape(20_000, 50, 4_096, 32, "token", 2_048),
}
PEERS = ("distributor", "ray", "petastorm", "mds")
APART = ("memory", "bare")
# Figure, unit, and whether more is better.
FIGURES = {
    "first step": ("s", False),
    "epoch 1": ("rows/s", True),
    "epoch 3": ("rows/s", True),
    "job": ("s", False),
    "memory": ("MB", False),
    "written": ("MB", False),
}


class Training(Case):
    """A case whose ranks train; its runs report the figures of this bench."""

    def _run(self, side: Side, mode: str, folder: Path) -> dict[str, Any]:
        with (
            marked_processes.Meter(side.mark) as meter,
            footprint.Footprint(side.mark) as processes,
        ):
            times = side.run(mode, folder, free_port())
        ranks = data_table.read_ranks(folder)
        found = data_table.figures(times, ranks, meter, self._shape.rows)
        return {
            "first step": found["call"],
            "epoch 1": found["epoch 1"],
            "epoch 3": found["epoch 3"],
            "job": times["ended"] - times["called"],
            "memory": processes.memory / 1e6,
            "written": max(0, processes.written) / 1e6,
            "cpu": found["job cpu"],
            "checks": list(data_table.check(ranks, self._expected)),
        }


def run_case(model: str, flags: argparse.Namespace) -> tuple[list[dict[str, Any]], str]:
    """Runs all rounds of a model; returns the runs and their table in Markdown."""
    shape = SHAPES[model].fewer(flags.fewer)
    own: list[dict[str, Any]] = []
    # Ray's last processes may still write to it.
    options: dict[str, Any] = {"prefix": "hearth-bench-", "ignore_cleanup_errors": True}
    with tempfile.TemporaryDirectory(**options) as folder:
        more = {"model": model, "epochs": EPOCHS}
        case = Training(model, "frame", shape, Path(folder), more)
        with case.running(flags.contenders.split(",")):
            for turn in range(flags.rounds == 1, flags.rounds + 1):  # the first is a warm-up
                for run in case.turn("window"):
                    shown = {k: round(v, 3) for k, v in run.items() if isinstance(v, float)}
                    print(f"{model} {turn} {run['contender']}: {shown} {run['checks']}",
                          file=sys.stderr, flush=True)  # fmt: skip
                    if turn > 0:
                        own.append({"case": model, "round": turn, **run})
    return own, table_of(model, own, case.failed)


def table_of(model: str, runs: list[dict[str, Any]], failed: dict[str, list[str]]) -> str:
    """best / median of each contender."""
    lines = [f"### {model}", "", "| contender | rounds | " + " | ".join(FIGURES) + " | rows |"]
    lines.append("|" + "---|" * (len(FIGURES) + 3))
    for contender in dict.fromkeys(run["contender"] for run in runs):
        own = [run for run in runs if run["contender"] == contender]
        cells = [contender, str(len(own))]
        for figure, (_, more) in FIGURES.items():
            values = [run[figure] for run in own]
            best = max(values) if more else min(values)
            cells.append(f"{best:.4g} / {statistics.median(values):.4g}")
        cells.append("" if contender == "bare" else data_table.rows_of(own))
        lines.append("| " + " | ".join(cells) + " |")
    for contender, texts in failed.items():
        last = data_table.last_line(texts[-1])
        lines += ["", f"{contender}: {len(texts)} failed, the last by `{last}`"]
    return "\n".join([*lines, ""])


def add_rows(table: report.Report, model: str, runs: Iterable[dict[str, Any]]) -> None:
    """Compares Hearth with the best peer for each figure, and with each contender of APART."""
    values: dict[str, dict[str, list[float]]] = {figure: {} for figure in FIGURES}
    for run in runs:
        for figure in FIGURES:
            values[figure].setdefault(run["contender"], []).append(run[figure])
    for figure, (unit, more) in FIGURES.items():
        found = values[figure]
        best = max if more else min
        peers = [name for name in PEERS if name in found]
        against = [best(peers, key=lambda name: best(found[name]))] if peers else []
        if "hearth" not in found:
            continue
        for peer in [*against, *(name for name in APART if name in found)]:
            table.add(f"{model}/{figure}", ours=found["hearth"], peer=found[peer], peer_name=peer,
                      unit=unit, higher_is_better=more)  # fmt: skip


def plot(runs: list[dict[str, Any]], path: Path) -> None:
    """Plots the medians of first step and job for each model and contender."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    models = list(dict.fromkeys(run["case"] for run in runs))
    figure, axes = pyplot.subplots(1, len(models), figsize=(4 * len(models), 3.2), squeeze=False)
    for axis, model in zip(axes[0], models, strict=True):
        own = [run for run in runs if run["case"] == model and run["contender"] not in APART]
        names = list(dict.fromkeys(run["contender"] for run in own))
        for name, color, shade in (("job", "#9ecae1", 1), ("first step", "#3182bd", 2)):
            heights = [
                statistics.median(run[name] for run in own if run["contender"] == contender)
                for contender in names
            ]
            axis.barh(names, heights, color=color, label=name, zorder=shade)
        axis.invert_yaxis()
        axis.set_title(model)
        axis.set_xlabel("seconds")
    axes[0][0].legend()
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = report.arguments(__doc__.splitlines()[0])
    parser.add_argument("--markdown", type=Path, help="where to write the tables")
    parser.add_argument("--plot", type=Path, help="where to draw the times (.png, .svg)")
    parser.add_argument("--fewer", type=int, default=1, help="divide numbers of rows by this")
    parser.add_argument("--contenders", default=",".join(["hearth", *PEERS, *APART]))
    flags = parser.parse_args()
    prepare(flags.contenders.split(","))
    table, runs, sections = report.Report(flags.only), [], []
    for model in filter(table.wants, SHAPES):
        started = time.monotonic()
        found, section = run_case(model, flags)
        print(f"{model}: {time.monotonic() - started:.0f} s", file=sys.stderr)
        runs += found
        sections.append(section)
        add_rows(table, model, found)
        if flags.markdown:
            flags.markdown.write_text("\n".join(sections))
        if flags.json:
            flags.json.write_text(json.dumps({"rows": table.rows, "runs": runs}, indent=1) + "\n")
    if flags.plot and runs:
        plot(runs, flags.plot)


if __name__ == "__main__":
    main()
