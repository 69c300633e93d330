"""Describes a feed job: rows that the driver sends to the nodes."""

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
    keep: bool = False  # nodes store the rows, to replay them in later epochs
    feed: str = field(default_factory=lambda: secrets.token_hex(8))
    delivered: frozenset[int] | None = None  # non-empty partitions; None until all are consumed
    compare: bool = False  # False: skip safe partitions; True: send them, so nodes can compare them
