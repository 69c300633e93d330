"""Work in a thread of its own while the program goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future


def in_background(act: Callable[[], None]) -> Future[None]:
    """Runs it in a thread that does not keep the process, and whose end can be waited for."""
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
