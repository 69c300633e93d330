"""Shows the latest metrics of a training in a status line, and the output of ranks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from hearth.spark.progress import Progress

_SHOWN = 6  # maximum number of metrics in the line
# Refresh intervals: on a terminal, where the line is updated in place, and in other output, such as
# a notebook's.
_REFRESH_S, _LINES_S = 0.5, 10.0
_WINDOW_S = 1.0


class Rate:
    """A meter of rows per second, computed from a growing count at intervals of a second or more.
    Not thread-safe."""

    def __init__(self) -> None:
        self._since: tuple[float, int] | None = None
        self.value: float | None = None

    def note(self, rows: int, at: float) -> bool:
        """Adds a count of rows; returns whether `value` has changed."""
        if self._since is None or rows < self._since[1]:  # the program has restarted
            self._since, self.value = (at, rows), None
        began, before = self._since
        if at - began < _WINDOW_S or rows == before:
            return False
        self.value = (rows - before) / (at - began)
        self._since = at, rows
        return True


def line_of(step: int, values: Mapping[str, float], rate: float | None) -> str:
    """The line, such as `step 120  loss 0.3125  accuracy 0.91  1,234 rows/s`."""
    parts = [f"step {step:,}"]
    parts += [f"{name} {value:.4g}" for name, value in list(values.items())[:_SHOWN]]
    if len(values) > _SHOWN:
        parts.append(f"({len(values) - _SHOWN} more)")
    if rate is not None:
        parts.append(f"{rate:,.0f} rows/s")
    return "  ".join(" ".join(part.split()) for part in parts)


class ReportLine:
    """The driver's display: shows the status line at intervals, and output at once, until close().
    Not thread-safe."""

    def __init__(self) -> None:
        self._progress = Progress(first="training")
        self._opened = False
        self._shown_at = float("-inf")
        self._unshown = ""

    def show(self, line: str) -> None:
        """Replaces the status line; shows it when due."""
        if not self._opened:
            self._progress.__enter__()
            self._opened = True
        self._unshown = line
        pause = _REFRESH_S if self._progress.interactive else _LINES_S
        if time.monotonic() - self._shown_at >= pause:
            self._say()

    def output(self, label: str, lines: Sequence[str], left_out: int) -> None:
        """Shows lines that a rank wrote."""
        shown = [f"{label} {line}" for line in lines]
        if left_out:
            shown.append(f"{label} ... {left_out:,} lines omitted; see the executor's log")
        if shown:
            self._progress.show({"event": "output", "text": "\n".join(shown)})

    def show_event(self, event: dict[str, Any]) -> None:
        """Passes an event to Progress.show()."""
        self._progress.show(event)

    def close(self) -> None:
        """Shows the last status line if it has not been shown, and ends."""
        if self._unshown:
            self._say()
        if self._opened:
            self._progress.__exit__()

    def _say(self) -> None:
        self._progress.show({"event": "waiting", "text": self._unshown})
        self._shown_at, self._unshown = time.monotonic(), ""
