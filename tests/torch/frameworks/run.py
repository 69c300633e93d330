#!/usr/bin/env python3
"""Runs unchanged programs of PyTorch frameworks as two processes with the backend "hearth".

Each program gets the path of a Parquet file, whose rows some programs count, and of a folder that
both processes share. `make test-torch-frameworks` runs this in an environment with the frameworks.
The processes have torchrun's environment variables, which a Hearth cluster also sets.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
PROGRAMS = (
    "accelerate_program.py",
    "accelerate_feed_program.py",
    "accelerate_dataset_program.py",
    "datasets_program.py",
    "lightning_program.py",
    "lightning_feed_program.py",
    "lightning_dataset_program.py",
    "torchmetrics_program.py",
    "jpeg_program.py",
    "lora_program.py",
    "optuna_program.py",
    "tokenizer_program.py",
    "trainer_program.py",
    "trainer_dataset_program.py",
)
WORLD = 2
ROWS = 256  # as in feed_rows.py
TIMEOUT_S = 300


def run(program: str, rows: Path) -> bool:
    """Whether all processes of the program succeeded; they print to standard output."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = []
    for rank in range(WORLD):
        node = {
            "RANK": rank,
            "WORLD_SIZE": WORLD,
            "LOCAL_RANK": 0,
            "LOCAL_WORLD_SIZE": 1,
            "GROUP_RANK": rank,
            "NODE_RANK": rank,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
        }
        environment = {**os.environ, **{key: str(value) for key, value in node.items()}}
        environment["PYTHONPATH"] = str(HERE.parents[1] / "python")  # for dataset_ranks.py
        folder = rows.parent / Path(program).stem
        folder.mkdir(exist_ok=True)
        command = [sys.executable, str(HERE / program), str(rows), str(folder)]
        processes.append(subprocess.Popen(command, env=environment))
    try:
        return all([process.wait(TIMEOUT_S) == 0 for process in processes])
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main() -> int:
    """Returns the exit status: 0 if all programs succeeded."""
    with TemporaryDirectory() as folder:
        rows = Path(folder, "rows.parquet")
        ids = range(ROWS)
        pq.write_table(pa.table({"labels": ids, "x": pa.array(ids, pa.float32())}), rows)
        failed = [program for program in PROGRAMS if not run(program, rows)]
    print(f"failed: {', '.join(failed)}" if failed else f"{len(PROGRAMS)} programs succeeded")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
