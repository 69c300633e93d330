"""The rows that the driver sends to the nodes in one go."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any


@dataclass
class FeedJob:
    """The rows of one train() call, or of one of its epochs."""

    rows: Any
    queue: str
    timeout_s: float
    keep: bool = False  # the nodes replay the rows later
    feed: str = field(default_factory=lambda: secrets.token_hex(8))
    delivered: frozenset[int] | None = None  # non-empty partitions, once all rows are consumed
    compare: bool = False  # recompute and compare safe partitions, else skip them
