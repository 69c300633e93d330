"""A rank of bench/wire.py and bench/scale.py: times all-reduces as requested on its input."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from hearth.native import _core

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "hosts"))

import rank


def timed(group: _core.Group, timeout_s: float) -> dict[str, object]:
    """For each line {"bytes", "calls"} prints the seconds of a call and this thread's share of a
    core. Runs until the end of its input."""
    for line in sys.stdin:
        asked = json.loads(line)
        array = np.ones(asked["bytes"] // 4, dtype=np.float32)
        group.all_reduce(array, timeout_s=timeout_s)  # warm-up: the memory is new
        group.barrier(timeout_s=timeout_s)
        begun, busy = time.perf_counter(), time.thread_time()
        for _ in range(asked["calls"]):
            group.all_reduce(array, op="mean", timeout_s=timeout_s)
        elapsed, busy = time.perf_counter() - begun, time.thread_time() - busy
        rank.say(seconds=elapsed / asked["calls"], cores=busy / elapsed)
    return {}


if __name__ == "__main__":
    rank.main({"timed": timed})
