"""What a training told, as rows: one for each value of each output."""

from __future__ import annotations

import time
from typing import Any

SCHEMA = (
    "iteration bigint, phase string, output string, value double, seconds double, "
    "images_per_s double"
)
Row = tuple[int, str, str, float, float, float | None]


class History:
    """Keeps rows of a training's events; `seconds` count from here. One thread uses it."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._start = time.monotonic()

    def take(self, event: dict[str, Any]) -> None:
        """Notes a progress or validation event; others say nothing of outputs."""
        seconds = time.monotonic() - self._start
        if event.get("event") == "progress":
            rate = float(event["images_per_s"])
            for name in ("loss", "lr"):
                row = (int(event["iteration"]), "TRAIN", name, float(event[name]), seconds, rate)
                self.rows.append(row)
        elif event.get("event") == "validation":
            for name, values in event["outputs"].items():
                for at, value in enumerate(values):
                    output = name if len(values) == 1 else f"{name}[{at}]"
                    row = (int(event["iteration"]), "TEST", output, float(value), seconds, None)
                    self.rows.append(row)
