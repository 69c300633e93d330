"""The summary of a training, as in pyspark.ml: a dict of figures for each epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class TrainingSummary:
    """The history of a training.

    Attributes:
        history: for each epoch its number and figures: loss, metrics, val_loss, lr, seconds, rows.
        best_epoch: the epoch whose weights the model has; -1: the last one.
        stopped_early: whether early stopping or a callback ended the training.
    """

    def __init__(self, history: Sequence[dict[str, Any]], best_epoch: int, stopped_early: bool):
        self.history = [dict(row) for row in history]
        self.best_epoch, self.stopped_early = best_epoch, stopped_early

    @property
    def totalIterations(self) -> int:
        """Number of trained epochs."""
        return len(self.history)

    @property
    def objectiveHistory(self) -> list[float]:
        """The loss of each epoch."""
        return [row["loss"] for row in self.history]

    def frame(self, spark: Any = None) -> Any:
        """The history as a DataFrame with a double column for each figure."""
        from hearth.spark.session import as_session

        names = list(dict.fromkeys(name for row in self.history for name in row))
        kinds = {name: "bigint" if name in ("epoch", "rows") else "double" for name in names}
        rows = [tuple(_as(kinds[n], row.get(n)) for n in names) for row in self.history]
        schema = ", ".join(f"`{name}` {kind}" for name, kind in kinds.items())
        return as_session(spark).createDataFrame(rows, schema)

    def to_dict(self) -> dict[str, Any]:
        """A dict that can be saved as JSON; TrainingSummary(**...) is the inverse."""
        return {
            "history": self.history,
            "best_epoch": self.best_epoch,
            "stopped_early": self.stopped_early,
        }


def _as(kind: str, value: Any) -> Any:
    return None if value is None else int(value) if kind == "bigint" else float(value)
