"""Peers of bench/collective.py that run in separate processes: Open MPI and TensorFlow's ring.

The processes sleep until they receive a request.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_END_S = 20.0
_OPENMPI_OPTIONS = {
    "openmpi tcp": ["--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"],
    "openmpi shm": ["--mca", "btl", "self,vader"],
}


class Peer:
    """Processes that run all-reduces on request. A context manager that ends them on exit."""

    def __init__(self) -> None:
        self._ends = ExitStack()
        self._ask: list[object] = []  # each rank's input
        self._answers: object = None  # rank 0's output

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def measure(self, size: int, calls: int) -> float:
        """Returns the milliseconds per all-reduce of `size` bytes, averaged over `calls` of them.

        Raises RuntimeError if the processes have ended.
        """
        for pipe in self._ask:
            pipe.write(f"{size} {calls}\n")
            pipe.flush()
        answer = self._answers.readline()
        if not answer:
            raise RuntimeError(f"{type(self).__name__} ended: see its error above")
        return float(answer)

    def _start(self, command: list[str], **how: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **how)
        self._ends.callback(_end, process)
        return process


class OpenMpi(Peer):
    """Ranks under mpirun. `transport` is a key of _OPENMPI_OPTIONS."""

    def __init__(self, transport: str, world: int, folder: Path):
        super().__init__()
        program = folder / "mpi_all_reduce"
        source = str(_HERE / "mpi_all_reduce.c")
        if not program.exists():
            subprocess.run(["mpicc", "-O2", source, "-o", str(program)], check=True)
        pipes = f"{folder}/{transport.replace(' ', '-')}-{world}-"
        for rank in range(world):
            os.mkfifo(f"{pipes}{rank}")
        allowed = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        command = ["mpirun", *allowed, "--oversubscribe", "--bind-to", "none", "-n", str(world)]
        options = ["--mca", "pml", "ob1", *_OPENMPI_OPTIONS[transport]]
        process = self._start([*command, *options, str(program), pipes])
        self._answers = process.stdout
        for rank in range(world):
            # Opened read-write, so that opening never waits for a rank that failed to start.
            descriptor = os.open(f"{pipes}{rank}", os.O_RDWR)
            self._ask.append(self._ends.enter_context(os.fdopen(descriptor, "w")))

    def __exit__(self, *_: object) -> None:
        for pipe in self._ask:
            pipe.write("end\n")  # an empty line: the rank ends
            pipe.flush()
        super().__exit__()


class TensorFlowRing(Peer):
    """Workers of MultiWorkerMirroredStrategy whose all-reduce is TensorFlow's ring over gRPC."""

    def __init__(self, world: int):
        super().__init__()
        workers = [f"127.0.0.1:{_free_port()}" for _ in range(world)]
        for rank in range(world):
            task = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
            environment = os.environ | {"TF_CONFIG": json.dumps(task), "CUDA_VISIBLE_DEVICES": ""}
            process = self._start(
                [sys.executable, str(_HERE / "tf_ring.py")],
                stdin=subprocess.PIPE,
                stderr=subprocess.DEVNULL if rank else None,
                env=environment,
            )
            self._ask.append(process.stdin)
            if rank == 0:
                self._answers = process.stdout
        if self._answers.readline() != "ready\n":
            raise RuntimeError("TensorFlow's workers did not meet: see their error above")


def why_not(name: str) -> str:
    """Why the peer of that name cannot run on this machine; empty if it can."""
    if name.startswith("openmpi") and not (shutil.which("mpirun") and shutil.which("mpicc")):
        return "Open MPI is not installed (Debian: apt-get install openmpi-bin libopenmpi-dev)"
    return ""


def start(name: str, world: int, folder: Path) -> Peer:
    """The peer of that name, which writes its files to `folder`. Raises as the classes here."""
    return TensorFlowRing(world) if name == "grpc" else OpenMpi(name, world, folder)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _end(process: subprocess.Popen[str]) -> None:
    if process.stdin:
        process.stdin.close()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait(_END_S)
    process.stdout.close()
