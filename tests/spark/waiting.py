"""Waits for conditions that other processes or threads fulfil."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def wait_until(condition: Callable[[], Any], timeout_s: float) -> Any:
    """Polls `condition` until it is true or the deadline has passed; returns its last result."""
    deadline = time.monotonic() + timeout_s
    while not (result := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return result
