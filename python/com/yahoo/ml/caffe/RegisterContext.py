"""Registration of a SparkContext, which CaffeOnSpark's Python programs call first."""

from __future__ import annotations

from typing import Any

__all__ = ["registerContext", "registerSQLContext"]


def registerContext(sc: Any) -> None:
    """Does nothing, because each class uses the SparkContext that is passed to its constructor."""


def registerSQLContext(sqlContext: Any) -> None:
    """Does nothing."""
