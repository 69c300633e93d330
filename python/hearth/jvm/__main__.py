"""The process: it answers the JVM that has started it, until that one asks no more or is gone."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress


def main() -> int:
    """Returns the exit status. The JVM's port and secret are in the environment, as those of
    spark-submit are."""
    # The JVM hears Ctrl-C, too, and decides what becomes of this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_jvm, name="hearth-end", daemon=True).start()
    from hearth.jvm import answers, gateway

    answers.serve(gateway.connect())
    return 0


def _end_with_jvm() -> None:
    """Standard input is a pipe that nobody writes to: it ends when the JVM does, however it does.

    What this process has begun hangs on that JVM or on this process, so nothing is cleared away.
    """
    with suppress(OSError):
        while os.read(0, 4096):
            pass
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
