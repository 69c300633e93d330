"""Records a program's events in the timeline that HEARTH_TIMELINE=FOLDER requests.

with span("validate"):
    ...
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def span(name: str) -> Iterator[None]:
    """Records the block as an event on this thread's track, if a timeline is written."""
    from hearth.native import _core

    is_on, begin = _core.timeline_is_on(), time.monotonic()
    try:
        yield
    finally:
        if is_on:
            _core.timeline_add(name, begin, time.monotonic())
