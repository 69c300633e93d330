"""Counts the rows that this process's loaders have delivered to the program."""

from __future__ import annotations

import threading

_lock = threading.Lock()
_rows = 0


def note_delivered(rows: int) -> None:
    """Records that a loader delivers a batch of `rows` rows. Thread-safe."""
    global _rows
    with _lock:
        _rows += rows


def delivered_rows() -> int:
    """The number of rows that all loaders have delivered."""
    return _rows
