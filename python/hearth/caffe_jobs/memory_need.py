"""Estimates a trainer's memory from its net. Runs as a program, so that the memory of the net and
of libtorch is freed when it ends.

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

# Measured memory of Spark's Python worker and daemon, a trainer with the smallest net, and the
# JVM's memory outside its heap (classes, code, threads). LeNet needed up to 464 MB.
_BASE_MB = 470
# Copies of each float32 parameter: value, gradient, and one or two histories. Rank 0 allocates two
# more copies while it writes a snapshot.
_COPIES = {"AdaDelta": 4, "Adam": 4}
_FEW_COPIES, _WRITING = 3, 2
_ANSWER_S = 60.0


# Memory of the two windows of streamed rows.
STREAMED_MB = 128


def memory_warnings(
    spark: Any, job: Mapping[str, Any], solver_type: str = "", more_mb: int = 0
) -> Iterator[str]:
    """Yields warnings if executors have too little memory for a training.

    `more_mb`: memory that a rank needs in addition to its net's.
    """
    if not executor_memory.is_limited(spark):
        return
    if text := executor_memory.address_limit(spark):
        yield text
    need = trainer_mb(job, solver_type)
    if need is not None and (text := executor_memory.too_little(spark, need + more_mb)):
        yield text


def trainer_mb(job: Mapping[str, Any], solver_type: str = "") -> int | None:
    """Estimated memory of one rank of a training; None if the net cannot be built in this process's
    environment."""
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
        # Counts each blob's values and gradients. This is an upper bound, because many blobs share
        # memory.
        floats = counts["params"] * (copies + _WRITING) + 2 * counts["values"] * job["devices"]
        return _BASE_MB + (floats * 4 >> 20)
    return None


def _counts(text: str) -> dict[str, int]:
    """Number of values in a TRAIN net's parameters and in its blobs."""
    from hearth.native import _caffe

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.prototxt"
        path.write_text(text, encoding="utf-8")
        net = _caffe.Net.read(str(path), "TRAIN", 0, [], 1)
    params = [blob.count for blobs in dict(net.params).values() for blob in blobs]
    return {"params": sum(params), "values": sum(blob.count for blob in dict(net.blobs).values())}


if __name__ == "__main__":
    print(json.dumps(_counts(sys.stdin.read())))
