"""Filtering of the standard error of Spark's JVM."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import subprocess, threading
from hearth.spark.java_stderr import filtered_stderr

with filtered_stderr() as stderr:
    subprocess.run(["cat"], stdout=stderr, check=True)
for thread in threading.enumerate():
    if thread.name == "spark-stderr":
        thread.join()
"""
JAVA = b"WARNING: Using incubator modules: jdk.incubator.vector\n"
BLAS = (
    b"netlib-blas: JNI_OnLoad: dlopen(libblas.so.3) failed: libblas.so.3: cannot open shared "
    b"object file: No such file or directory\n"
)
POOL = (
    b"java.util.concurrent.RejectedExecutionException: Task Future(<not completed>) rejected from "
    b"java.util.concurrent.ThreadPoolExecutor@5d6[Shutting down, pool size = 1]\n"
    b"\tat java.base/java.util.concurrent.ThreadPoolExecutor.reject(ThreadPoolExecutor.java:833)\n"
    b"\tat java.base/java.lang.Thread.run(Thread.java:840)\n"
)


def seen(lines: bytes) -> bytes:
    """What the parent's standard error shows if a child writes these lines to its own."""
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, input=lines, stderr=subprocess.PIPE, check=True).stderr


def test_warnings_without_a_remedy_are_dropped():
    assert seen(JAVA + b"one\n" + BLAS + POOL + b"two\n") == b"one\ntwo\n"


def test_everything_else_is_unchanged():
    text = b"03:36:58 ERROR Utils: \xff failed\n\n" + b"x" * 200_000 + b"\nno end of line"
    assert seen(text) == text


def test_stack_traces_of_other_exceptions_arrive():
    text = b"java.io.IOException: no space left\n\tat a.B.c(B.java:1)\n"
    text += POOL.replace(b"Shutting down", b"Running")
    assert seen(POOL + text) == text


def test_another_incubating_module_is_reported():
    line = b"WARNING: Using incubator modules: jdk.incubator.vector, jdk.incubator.foreign\n"
    assert seen(line) == line


def test_the_start_of_a_line_is_written_at_once():
    """Progress bars end their lines late, or with a carriage return."""
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as run:
        for text in (b"50 %", b" 60 %\r", b"netlib-"):
            run.stdin.write(text)
            if text != b"netlib-":
                assert run.stderr.read(len(text)) == text
        run.stdin.close()
        assert run.stderr.read() == b"netlib-"
