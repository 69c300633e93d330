"""The rows that the TensorFlow benches feed. Runs in upstream's environment, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PARTITIONS = 2


@dataclass(frozen=True)
class Shape:
    """Rows of one kind; a consumer reads the column x."""

    rows: int
    batch_size: int
    x: str  # SQL expression over the row's number `id`
    as_row: type  # type of an RDD's row

    def frame(self, spark: Any, rows: int) -> Any:
        """A DataFrame of the columns x and id, cached."""
        frame = spark.sql(f"select {self.x} as x, id from range(0, {rows}, 1, {PARTITIONS})")
        frame.cache().count()
        return frame

    def rdd(self, frame: Any) -> Any:
        """The column x of a DataFrame as an RDD of Python rows, cached."""
        as_row = self.as_row
        rows = frame.rdd.map(lambda row: as_row(row.x)).cache()
        rows.count()
        return rows


def _floats(count: int) -> str:
    return f"transform(sequence(1, {count}), i -> cast((id * 31 + i) % 1000 as float))"


SHAPES = {
    "784 floats": Shape(20_000, 100, _floats(784), list),
    "10 floats": Shape(400_000, 256, _floats(10), list),
    "150 KB images": Shape(
        1_500, 32, "cast(repeat(cast(id % 10 as string), 150528) as binary)", bytes
    ),
}
