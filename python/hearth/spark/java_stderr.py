"""Filters warnings that users can ignore from the standard error of Spark's JVM."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# The warnings to drop. The first is Java's, because Spark uses an incubating module; no option
# disables this warning. The second says that Spark ML falls back to a BLAS in Java, because no
# native one is installed. The third, with its stack trace, comes from a Spark thread pool that is
# shut down when a session ends.
_IGNORED = re.compile(
    rb"WARNING: Using incubator modules: jdk\.incubator\.vector$"
    rb"|netlib-\w+: JNI_OnLoad: dlopen\(\S+\) failed: "
    rb"|java\.util\.concurrent\.RejectedExecutionException: Task .* rejected from .*"
    rb"\[(?:Shutting down|Terminated), "
)


# Prefixes of these warnings. Only lines with such a prefix are buffered until their end arrives.
_HELD = (b"WARNING: Using ", b"netlib-", b"java.util.concurrent.Rej", b"\tat ")


@contextmanager
def filtered_stderr() -> Iterator[int]:
    """Yields a file descriptor for a child's standard error, valid in the block.

    A daemon thread copies the output to this process's standard error until the child ends.
    """
    reader, writer = os.pipe()
    threading.Thread(target=_copy, args=(reader,), name="spark-stderr", daemon=True).start()
    try:
        yield writer
    finally:
        os.close(writer)


def _copy(reader: int) -> None:
    pending, in_line, ignored = b"", False, False  # in_line: the line's start was copied
    with (
        os.fdopen(reader, "rb", buffering=0) as stream,
        suppress(OSError),
    ):  # this process's stream may be closed
        while chunk := stream.read(1 << 16):
            *lines, pending = re.split(rb"(?<=[\r\n])", pending + chunk)
            for line in lines:
                ignored = not in_line and _is_ignored(line, ignored)
                if not ignored:
                    _write(line)
                in_line = False
            if pending and (in_line or not _may_be_ignored(pending)):
                _write(pending)
                pending, in_line = b"", True
        _write(pending)


def _is_ignored(line: bytes, follows_ignored: bool) -> bool:
    if _IGNORED.match(line.rstrip()):
        return True
    return follows_ignored and line.startswith(b"\tat ")


def _may_be_ignored(beginning: bytes) -> bool:
    return any(beginning.startswith(held) or held.startswith(beginning) for held in _HELD)


def _write(text: bytes) -> None:
    while text:
        text = text[os.write(2, text) :]
