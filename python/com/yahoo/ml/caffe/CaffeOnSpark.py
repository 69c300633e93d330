"""CaffeOnSpark's main class, under the module name that its Python programs import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hearth import caffeonspark

__all__ = ["CaffeOnSpark"]


class CaffeOnSpark(caffeonspark.CaffeOnSpark):
    """hearth.caffeonspark.CaffeOnSpark with the constructor of older programs, which also pass an
    SQLContext."""

    def __init__(
        self,
        sc: Any = None,
        sqlContext: Any = None,
        on_event: Callable[[dict[str, Any]], None] | None = None,
    ):
        """`sqlContext` is ignored; the other arguments are those of
        hearth.caffeonspark.CaffeOnSpark."""
        super().__init__(sc, on_event)
