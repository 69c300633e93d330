"""The process: serves the JVM that started it, until that sends no more requests or ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress


def main() -> int:
    """Returns the exit status. The environment has the JVM's port and secret, in the variables of
    spark-submit."""
    # The JVM gets Ctrl-C, too, and decides about this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_jvm, name="hearth-end", daemon=True).start()
    from hearth.jvm import answers, gateway

    answers.serve(gateway.connect())
    return 0


def _end_with_jvm() -> None:
    """Ends with the JVM: standard input is a pipe without data, which closes when the JVM ends.

    All work depends on that JVM or on this process, so no cleanup is needed.
    """
    with suppress(OSError):
        while os.read(0, 4096):
            pass
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
