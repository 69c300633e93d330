"""Computes the figures of data.py's runs, checks their rows, and prints both as tables."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import marked_processes
import report

Figures = dict[str, float]

# Figure, unit, and whether more is better.
FIGURES = {
    "first batch": ("s", False),
    "call": ("s", False),
    "epoch 1": ("rows/s", True),
    "epoch 2": ("rows/s", True),
    "job cpu": ("s", False),
    "epoch 1 cpu": ("s", False),
    "epoch 2 cpu": ("s", False),
}
OURS = "hearth"
# Not peers: Spark itself, Hearth without a spool, and a loader that is not a product.
APART = ("look", "unspooled", "loop")


def figures(
    times: Figures, ranks: list[dict[str, Any]], meter: marked_processes.Meter, rows: int
) -> Figures:
    """Figures of one run, from its driver's and its ranks' times."""
    called, written = times["called"], times["written"]
    found = {"job cpu": meter.between(called, times["ended"])}
    if not ranks:
        return {**found, "epoch 1": rows / (times["ended"] - called)}
    writing = written - called
    first, second, *more = zip(*(rank["ends"] for rank in ranks), strict=True)
    ready = [rank["ready"] for rank in ranks]
    slowest = max(rank["first"] - rank["ready"] for rank in ranks)
    epoch = max(end - begin for begin, end in zip(ready, first, strict=True))
    return {
        **found,
        "first batch": writing + slowest,
        "call": max(rank["first"] for rank in ranks) - called,
        "epoch 1": rows / (writing + epoch),
        "epoch 2": rows / max(end - begin for begin, end in zip(first, second, strict=True)),
        **{
            f"epoch {number}": rows / max(end - begin for begin, end in zip(*pair, strict=True))
            for number, pair in enumerate(pairwise([second, *more]), 3)
        },
        "epoch 1 cpu": meter.between(called, written) + meter.between(min(ready), max(first)),
        "epoch 2 cpu": meter.between(min(first), max(second)),
        "writing": writing,
        "start": max(ready) - written,
    }


def read_ranks(folder: Path) -> list[dict[str, Any]]:
    """A run's results by rank, with the ids of each epoch; empty for a run without ranks."""
    import numpy as np

    found = []
    for file in sorted(folder.glob("rank*.json")):
        ids = np.load(file.with_suffix(".npz"))
        found.append({**json.loads(file.read_text()), "ids": [ids[name] for name in ids.files]})
    return found


def check(ranks: list[dict[str, Any]], expected: Figures) -> Iterator[dict[str, Any]]:
    """Checks each epoch.

    The result has missing and repeated rows, whether the values are correct, and how well the rows
    are mixed (0: not at all; 1: like a random permutation).
    """
    import numpy as np

    for epoch in range(len(ranks[0]["ends"]) if ranks else 0):
        ids = np.concatenate([rank["ids"][epoch] for rank in ranks])
        unique = len(np.unique(ids))
        once = unique == len(ids) == expected["rows"]
        yield {
            "missing": int(expected["rows"] - unique),
            "repeated": int(len(ids) - unique),
            "values": not once or sum(rank["sums"][epoch] for rank in ranks) == expected["sum"],
            "mixing": round(statistics.mean(mixing(rank["ids"][epoch]) for rank in ranks), 3),
        }


def mixing(ids: Any) -> float:
    """Distance of the rows from sorted order, relative to a random permutation's.

    Three times the mean displacement, divided by the number of rows.
    """
    import numpy as np

    if len(ids) == 0:
        return 0.0
    positions = np.argsort(np.argsort(ids, kind="stable"))
    return float(np.abs(positions - np.arange(len(ids))).mean() * 3 / len(ids))


def summary(name: str, runs: list[dict[str, Any]], failed: dict[str, list[str]]) -> str:
    """A case as a table in Markdown: best / median of each contender."""
    columns = [*FIGURES, "writing", "start"]
    lines = [
        f"### {name}",
        "",
        "| contender | rounds | " + " | ".join(columns) + " | mixing | rows |",
        "|" + "---|" * (len(columns) + 4),
    ]
    for contender in dict.fromkeys(run["contender"] for run in runs):
        own = [run for run in runs if run["contender"] == contender]
        cells = [contender, str(len(own))]
        for column in columns:
            values = [run[column] for run in own if column in run]
            best = max if FIGURES.get(column, ("", False))[1] else min
            shown = (best, statistics.median)
            cells.append(" / ".join(f"{f(values):.4g}" for f in shown) if values else "")
        cells += [_mixing_of(own), rows_of(own)]
        lines.append("| " + " | ".join(cells) + " |")
    for contender, texts in failed.items():
        lines += ["", f"{contender}: {len(texts)} failed, the last by `{last_line(texts[-1])}`"]
    return "\n".join([*lines, ""])


def last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1][:300]


def _mixing_of(runs: list[dict[str, Any]]) -> str:
    """The mixing in each epoch of the last run."""
    return ", ".join(f"{epoch['mixing']:.2f}" for epoch in runs[-1]["checks"])


def rows_of(runs: list[dict[str, Any]]) -> str:
    """The worst result of all runs."""
    epochs = [epoch for run in runs for epoch in run["checks"]]
    if not epochs:
        return ""
    missing = max(epoch["missing"] for epoch in epochs)
    repeated = max(epoch["repeated"] for epoch in epochs)
    words = [f"{missing} missing"] * bool(missing) + [f"{repeated} repeated"] * bool(repeated)
    words += ["other values"] * (not all(epoch["values"] for epoch in epochs))
    return ", ".join(words) or "all once"


def add_rows(table: report.Report, name: str, runs: list[dict[str, Any]]) -> None:
    """Compares Hearth with the best peer for each figure, and with each contender of APART."""
    for figure, (unit, more) in FIGURES.items():
        values: dict[str, list[float]] = {}
        for run in runs:
            if figure in run:
                values.setdefault(run["contender"], []).append(run[figure])
        ours = values.pop(OURS, None)
        floor = {peer: values.pop(peer) for peer in APART if peer in values}
        if ours is None:
            continue
        best = max if more else min
        if values:
            peer = best(values, key=lambda contender: best(values[contender]))
            floor = {peer: values[peer], **floor}
        for peer, found in floor.items():
            table.add(
                f"{name}/{figure}",
                ours=ours,
                peer=found,
                peer_name=peer,
                unit=unit,
                higher_is_better=more,
            )
