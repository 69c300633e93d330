"""Rows that every bench prints and saves: Hearth and a peer, measured in the same run."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def arguments(description: str) -> argparse.ArgumentParser:
    """The command line that all benches share: ``--json FILE``, ``--rounds N``, ``--only TEXT``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", type=Path, help="where to write the rows")
    parser.add_argument("--rounds", type=int, default=5, help="rounds per row (default: 5)")
    parser.add_argument(
        "--only", default="", help="run only rows whose name contains one of these texts, by comma"
    )
    return parser


def seconds(call: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def alternate(rounds: int, *contenders: Callable[[], T]) -> list[list[T]]:
    """Runs the calls in turn, on the same state of the machine; returns each one's results.

    One unmeasured call of each comes first.
    """
    for contender in contenders:
        contender()
    turns = [[contender() for contender in contenders] for _ in range(rounds)]
    return [list(values) for values in zip(*turns, strict=True)]


def in_turn(rounds: int, calls: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """The same for contenders with names."""
    return dict(zip(calls, alternate(rounds, *calls.values()), strict=True))


class Report:
    """Collects rows, prints each at once, and saves them as a JSON list.

    A row has name, ours and peer (best value of the rounds), ours_median and peer_median,
    peer_name, unit, rounds, and ratio: how many times better our best value is than the peer's.
    """

    def __init__(self, only: str = "") -> None:
        self._only = [text.strip() for text in only.split(",")]
        self.rows: list[dict[str, object]] = []

    def wants(self, name: str) -> bool:
        """Whether the row was requested (``--only``)."""
        return any(text in name for text in self._only)

    def add(
        self,
        name: str,
        *,
        ours: Sequence[float],
        peer: Sequence[float],
        peer_name: str,
        unit: str,
        higher_is_better: bool = True,
    ) -> float:
        """Adds a row from the values of all rounds and returns its ratio (> 1: ours is better).

        ``peer`` may hold one value for all rounds, such as a limit that ours must keep.
        """
        best = max if higher_is_better else min
        a, b = best(ours), best(peer)
        ratio = a / b if higher_is_better else b / a
        self.rows.append(
            {
                "name": name,
                "ours": a,
                "peer": b,
                "peer_name": peer_name,
                "unit": unit,
                "ratio": ratio,
                "ours_median": statistics.median(ours),
                "peer_median": statistics.median(peer),
                "rounds": len(ours),
            }
        )
        self._print_last()
        return ratio

    def save(self, path: Path | str | None) -> None:
        """Writes the rows as a JSON list; does nothing without a path."""
        if path is not None:
            Path(path).write_text(json.dumps(self.rows, indent=1) + "\n")

    def _print_last(self) -> None:
        if len(self.rows) == 1:
            columns = f"{'name':<36} {'ours':>12} {'peer':>12}  {'unit':<10} {'ratio':>7}"
            print(columns + "  medians, peer")
        row = self.rows[-1]
        print(
            f"{row['name']:<36} {row['ours']:>12.5g} {row['peer']:>12.5g}  {row['unit']:<10} "
            f"{row['ratio']:>7.2f}  {row['ours_median']:.5g} / {row['peer_median']:.5g}, "
            f"{row['peer_name']}",
            flush=True,
        )
