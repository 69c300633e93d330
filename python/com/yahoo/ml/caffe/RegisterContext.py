"""Registration of a SparkContext, which CaffeOnSpark's Python programs call first."""

from __future__ import annotations

from typing import Any

__all__ = ["registerContext", "registerSQLContext"]


def registerContext(sc: Any) -> None:
    """There is nothing to register: each class takes the context that it is given."""


def registerSQLContext(sqlContext: Any) -> None:
    """There is nothing to register."""
