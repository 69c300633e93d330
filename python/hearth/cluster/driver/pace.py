"""The progress line of train(): how fast nodes consume rows, and how long they wait for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hearth.cluster import roles
from hearth.spark.progress import Progress

# Minimum interval over which a node's rate is computed, to smooth the rate.
_WINDOW_S = 1.0
# A node without an event for this long is shown as silent.
_SILENT_S = 3.0
_NAMED = 6
# Refresh intervals of the line: on a terminal, where it is updated in place, and in other output.
_REFRESH_S, _LINES_S = 1.0, 10.0


@dataclass
class _Node:
    since: float
    taken: float
    waited_s: float
    reported_at: float
    starts: bool  # the node is in its first step, which includes one-time work
    rate: float | None = None
    waits: float = 0.0  # fraction of the time that the node waits for rows


class Pace:
    """The nodes' last "rows" events, updated by the ClusterWatch's thread."""

    def __init__(
        self,
        template: Mapping[str, Sequence[int]],
        clock: Callable[[], float] = time.monotonic,
    ):
        self._template = template
        self._clock = clock
        self._lock = threading.Lock()
        self._nodes: dict[int, _Node] = {}

    def begin(self) -> None:
        """Resets at the start of a feed. The rates exclude each node's first step."""
        with self._lock:
            self._nodes.clear()

    def note(self, rank: int, event: Mapping[str, Any]) -> None:
        """Handles a node's event, with its totals of "taken" rows and "waited_s" seconds."""
        now, taken, waited_s = self._clock(), event["taken"], event["waited_s"]
        with self._lock:
            node = self._nodes.get(rank)
            if node is None or node.starts:
                self._nodes[rank] = _Node(now, taken, waited_s, now, starts=node is None)
                return
            node.reported_at, seconds = now, now - node.since
            if seconds >= _WINDOW_S:
                node.rate = (taken - node.taken) / seconds
                node.waits = min(1.0, (waited_s - node.waited_s) / seconds)
                node.since, node.taken, node.waited_s = now, taken, waited_s

    def line(self) -> str:
        """The nodes' rates and waits; if there are many nodes, only the slowest."""
        now = self._clock()
        with self._lock:
            rates = {rank: self._state(node, now) for rank, node in self._nodes.items()}
        if not any(rate for rate, _ in rates.values()):
            return ""
        total = sum(rate for rate, _ in rates.values())
        shown = sorted(rates, key=lambda rank: rates[rank][0])[:_NAMED]
        parts = [
            f"{roles.name_of(self._template, rank)} {rates[rank][0]:,.0f} ({rates[rank][1]})"
            for rank in sorted(shown)
        ]
        more = f", {len(rates) - len(shown)} faster ones" if len(rates) > len(shown) else ""
        return f"{total:,.0f} rows/s: {', '.join(parts)}{more}"

    @staticmethod
    def _state(node: _Node, now: float) -> tuple[float, str]:
        """(a node's rows per second, its state)."""
        if node.rate is None:
            return 0.0, "starts"
        if now - node.reported_at >= _SILENT_S:  # the node computes a long step, or waits
            return 0.0, f"silent for {now - node.reported_at:.0f} s"
        return node.rate, f"waits {node.waits:.0%}"


class PaceLine:
    """A progress line, shown on standard error during a `with` block."""

    def __init__(self, line: Callable[[], str], progress: Progress | None = None):
        self._line = line
        self._progress = progress or Progress(first="feeding the nodes")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hearth-pace", daemon=True)

    def __enter__(self) -> PaceLine:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        pause = _REFRESH_S if self._progress.interactive else _LINES_S
        with self._progress as progress:
            while not self._over.wait(pause):
                if line := self._line():
                    progress.show({"event": "waiting", "text": line})
