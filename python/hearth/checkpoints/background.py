"""Runs work in a background thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future


def in_background(act: Callable[[], None]) -> Future[None]:
    """Runs `act` in a daemon thread; the future completes when `act` returns or raises."""
    done: Future[None] = Future()

    def run() -> None:
        try:
            act()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    threading.Thread(target=run, name="hearth-checkpoint", daemon=True).start()
    return done
