"""Serves the JVM that started this process, until the JVM sends no more requests or ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress


def main() -> int:
    """Returns the exit status. The JVM's port and secret are in spark-submit's environment
    variables."""
    # Ctrl-C also interrupts the JVM, which decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_jvm, name="hearth-end", daemon=True).start()
    from hearth.jvm import answers, gateway

    answers.serve(gateway.connect())
    return 0


def _end_with_jvm() -> None:
    """Ends this process when standard input closes, which is a pipe that the JVM holds open.

    All work depends on that JVM or on this process, so no cleanup is needed.
    """
    with suppress(OSError):
        while os.read(0, 4096):
            pass
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
