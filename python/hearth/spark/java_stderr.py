"""Standard error of Spark's JVM, without warnings that its users can do nothing about."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# Java prints the first, as Spark asks for an incubating module; no option turns it off. The second
# says that Spark ML falls back to its BLAS in Java: no native one is installed. The third, with its
# stack trace, comes from a thread pool of Spark's that is shut down while a session ends.
_IGNORED = re.compile(
    rb"WARNING: Using incubator modules: jdk\.incubator\.vector$"
    rb"|netlib-\w+: JNI_OnLoad: dlopen\(\S+\) failed: "
    rb"|java\.util\.concurrent\.RejectedExecutionException: Task .* rejected from .*"
    rb"\[(?:Shutting down|Terminated), "
)


@contextmanager
def filtered_stderr() -> Iterator[int]:
    """A file descriptor for a child's standard error, valid inside the `with`.

    A daemon thread copies its lines to this process's standard error until the child ends.
    """
    reader, writer = os.pipe()
    threading.Thread(target=_copy_lines, args=(reader,), name="spark-stderr", daemon=True).start()
    try:
        yield writer
    finally:
        os.close(writer)


def _copy_lines(reader: int) -> None:
    ignored = False
    with os.fdopen(reader, "rb") as lines, suppress(OSError):  # standard error is closed
        for line in lines:
            ignored = bool(_IGNORED.match(line.rstrip())) or (ignored and line.startswith(b"\tat "))
            if not ignored:
                os.write(2, line)
