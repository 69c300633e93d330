"""Processes that inherited a mark in their environment, whoever their parent is by now."""

from __future__ import annotations

import os
from collections.abc import Iterator

import psutil

VARIABLE = "HEARTH_BENCH_MARK"


def own_mark() -> str:
    """Marks all processes that this one starts from here on."""
    os.environ[VARIABLE] = f"{os.getpid()}"
    return os.environ[VARIABLE]


def find(mark: str) -> Iterator[psutil.Process]:
    """Those that were started with the mark; not the process that called own_mark()."""
    for process in psutil.process_iter():
        try:
            if process.environ().get(VARIABLE) == mark:
                yield process
        except psutil.Error:
            continue


def cpu_seconds(mark: str) -> float:
    """User and system time of all of them, and of their children that have ended."""
    total = 0.0
    for process in find(mark):
        try:
            total += sum(process.cpu_times()[:4])
        except psutil.Error:
            continue
    return total
