"""Files that Spark, not the ranks, reads: the driver creates a DataFrame of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class SparkFiles:
    """Files that Spark reads. `kind`: Spark's format name. `columns`: None means all. `options`:
    Spark reader options, and `schema`.
    """

    kind: str
    uri: str
    columns: tuple[str, ...] | None = None
    options: tuple[tuple[str, Any], ...] = ()

    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows as a DataFrame. Raises Spark's errors."""
        options = dict(self.options)
        schema = options.pop("schema", None)
        frame = spark.read.load(self.uri, format=self.kind, schema=schema, **options)
        if self.columns is None:
            return frame
        return frame.select(*("`" + name.replace("`", "``") + "`" for name in self.columns))
