"""The history of a training as rows: one for each value of each output."""

from __future__ import annotations

import time
from typing import Any

SCHEMA = (
    "iteration bigint, phase string, output string, value double, seconds double, "
    "images_per_s double"
)
Row = tuple[int, str, str, float, float, float | None]

# Maximum number of TRAIN rows; above it, every second iteration's rows are dropped.
_MOST = 20_000


class History:
    """Collects a training's history from its events; `seconds` counts from this object's
    creation."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._start = time.monotonic()
        self._trained = 0  # number of TRAIN rows

    def take(self, event: dict[str, Any]) -> None:
        """Records progress and validation; a "ready" event drops the rows after its iteration."""
        kind = event.get("event")
        # Events that were buffered contain their time.
        seconds = event.get("seconds", time.monotonic() - self._start)
        if kind == "ready":  # a restart continues from an earlier iteration
            self.rows = [row for row in self.rows if row[0] <= int(event["iteration"])]
            self._trained = sum(row[1] == "TRAIN" for row in self.rows)
        elif kind == "progress":
            rate = float(event["images_per_s"])
            for name in ("loss", "lr"):
                value = float("nan") if event[name] is None else float(event[name])
                self.rows.append((int(event["iteration"]), "TRAIN", name, value, seconds, rate))
            self._thin_out()
        elif kind == "validation":
            for name, values in event["outputs"].items():
                for at, value in enumerate(values):
                    output = name if len(values) == 1 else f"{name}[{at}]"
                    number = float("nan") if value is None else float(value)
                    row = (int(event["iteration"]), "TEST", output, number, seconds, None)
                    self.rows.append(row)

    def _thin_out(self) -> None:
        self._trained += 2
        if self._trained <= _MOST:
            return
        positions = sorted({row[0] for row in self.rows if row[1] == "TRAIN"})
        kept = set(positions[::-2])  # every second one, from the end to keep the newest
        self.rows = [row for row in self.rows if row[1] != "TRAIN" or row[0] in kept]
        self._trained = 2 * len(kept)
