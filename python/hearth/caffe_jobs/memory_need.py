"""How much memory a trainer will take, from its net: a program, so that the net's own memory and
libtorch are freed when it ends.

    python3 -m hearth.caffe_jobs.memory_need <net.prototxt
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hearth import native
from hearth.spark import executor_memory

# Spark's Python worker and daemon, a trainer of the smallest net, and what the JVM takes beside its
# heap (classes, code, threads): what they were seen to take. LeNet once took 464 MB.
_BASE_MB = 470
# Of each parameter, as float32: value, gradient, and a history, or two of them; rank 0 holds the
# model twice more while it writes one.
_COPIES = {"AdaDelta": 4, "Adam": 4}
_FEW_COPIES, _WRITING = 3, 2
_ANSWER_S = 60.0


# Two windows of rows that are not kept.
STREAMED_MB = 128


def memory_warnings(
    spark: Any, job: Mapping[str, Any], solver_type: str = "", more_mb: int = 0
) -> Iterator[str]:
    """What to tell the user before a training whose executors have too little memory.

    `more_mb`: what a rank needs beside its net.
    """
    if not executor_memory.is_limited(spark):
        return
    if text := executor_memory.address_limit(spark):
        yield text
    need = trainer_mb(job, solver_type)
    if need is not None and (text := executor_memory.too_little(spark, need + more_mb)):
        yield text


def trainer_mb(job: Mapping[str, Any], solver_type: str = "") -> int | None:
    """An estimate for one rank of a training; None where the net cannot be built here."""
    command = [sys.executable, "-m", "hearth.caffe_jobs.memory_need"]
    with suppress(OSError, subprocess.SubprocessError, ValueError, KeyError):
        done = subprocess.run(
            command,
            input=job["net"]["text"],
            env=native.environment(),
            capture_output=True,
            text=True,
            timeout=_ANSWER_S,
            check=True,
        )
        counts = json.loads(done.stdout)
        copies = _COPIES.get(solver_type, _FEW_COPIES) * int(job["devices"])
        # Values and gradients of blobs; the plan of the net lets many of them share.
        floats = counts["params"] * (copies + _WRITING) + 2 * counts["values"] * job["devices"]
        return _BASE_MB + (floats * 4 >> 20)
    return None


def _counts(text: str) -> dict[str, int]:
    """Numbers in the parameters and in the blobs of a TRAIN net."""
    from hearth.native import _caffe

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.prototxt"
        path.write_text(text, encoding="utf-8")
        net = _caffe.Net.read(str(path), "TRAIN", 0, [], 1)
    params = [blob.count for blobs in dict(net.params).values() for blob in blobs]
    return {"params": sum(params), "values": sum(blob.count for blob in dict(net.blobs).values())}


if __name__ == "__main__":
    print(json.dumps(_counts(sys.stdin.read())))
