"""Counts the rows that the loaders of this process have given to its program."""

from __future__ import annotations

import threading

_lock = threading.Lock()
_rows = 0


def note_given(rows: int) -> None:
    """A loader gives a batch of so many rows. Any thread may call it."""
    global _rows
    with _lock:
        _rows += rows


def given_rows() -> int:
    """How many rows all loaders have given."""
    return _rows
