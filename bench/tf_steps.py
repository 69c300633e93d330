#!/usr/bin/env python3
"""TensorFlow's training steps with Hearth's collective against MultiWorkerMirroredStrategy's gRPC.

`bench/tf_steps.py --json FILE`. Three dense layers of 2048 (50 MB of gradients), two workers of one
thread each. Contenders are pairs of processes that step in turn:

strategy    a tf_keras model under MultiWorkerMirroredStrategy after use_for_collectives(); the
            peer is the same program without that line
optimizer   a Keras 3 model with a DistributedOptimizer, float32 or bfloat16 between the hosts

In `tcp` rows two processes use the loopback interface, in `1 Gbit/s` rows two hosts emulated with
network namespaces (tests/hosts/emulated_hosts.py, which needs root). A row "communication" is the
share of our step (the optimizer's) and of the peer's step that is not computation. The computation
is measured as a step without other ranks, which both workers execute at the same time.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from report import Report, arguments, in_turn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "hosts"))

from emulated_hosts import Link, Network, why_not

WORLD = 2
# On the loopback interface, half or three quarters of gRPC's step is communication.
ROWS = (256, 64)
STEPS = {"tcp": 8, "1 Gbit/s": 3}
PEER = "MultiWorkerMirroredStrategy over gRPC"
_WORKER = Path(__file__).with_name("tf_step_worker.py")

Start = Callable[[int, list[str], dict[str, str]], subprocess.Popen]


class Pair:
    """Two workers of one kind, until close()."""

    def __init__(self, kind: str, addresses: list[str], start: Start, folder: Path):
        folder.mkdir()
        environment = {**os.environ, "HEARTH_TRANSPORT": "tcp", "TF_CPP_MIN_LOG_LEVEL": "2"}
        job = {"kind": kind, "addresses": addresses, "folder": str(folder)}
        self._log = (folder / "log").open("w")
        self._workers = []
        for rank in range(WORLD):
            worker = start(rank, [sys.executable, str(_WORKER)], environment, self._log)
            self._workers.append(worker)
            self._tell(worker, {**job, "rank": rank})

    def ms(self, contender: str, rows: int, steps: int) -> float:
        """Milliseconds per step over `steps` steps, of the slower worker."""
        for worker in self._workers:
            self._tell(worker, {"contender": contender, "rows": rows, "steps": steps})
        lines = [worker.stdout.readline() for worker in self._workers]
        if not all(lines):
            raise SystemExit(f"a worker has ended: {Path(self._log.name).read_text()[-2000:]}")
        return max(json.loads(line)["ms"] for line in lines)

    def close(self) -> None:
        for worker in self._workers:
            worker.stdin.close()
        for worker in self._workers:
            worker.wait(30)
        self._log.close()

    @staticmethod
    def _tell(worker: subprocess.Popen, what: dict[str, Any]) -> None:
        print(json.dumps(what), file=worker.stdin, flush=True)


@contextmanager
def pairs(network: Network | None) -> Iterator[dict[str, Pair]]:
    """One pair of workers of each kind, on this machine or on the network's two hosts."""

    def start(rank: int, command: list[str], environment: dict[str, str], log: Any) -> Any:
        if network is not None:
            return network.hosts[rank].popen(command, env=environment, stderr=log)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return subprocess.Popen(command, env=environment, stderr=log, text=True, **pipes)

    hosts = [network.address(i) for i in range(WORLD)] if network else ["127.0.0.1"] * WORLD
    with tempfile.TemporaryDirectory(prefix="hearth-bench-") as folder, ExitStack() as stack:
        found = {}
        for kind in ("grpc", "strategy", "optimizer"):
            addresses = [f"{host}:{port}" for host, port in zip(hosts, free_ports(), strict=True)]
            found[kind] = Pair(kind, addresses, start, Path(folder, kind))
            stack.callback(found[kind].close)
        yield found


def free_ports() -> list[int]:
    """A currently unused port for each worker."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(WORLD)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def bench(report: Report, rounds: int, line: str, network: Network | None = None) -> None:
    """The rows for one link between the workers."""
    steps = STEPS[line]
    with pairs(network) as workers:
        for rows in ROWS:
            name = f"{line}/{rows} rows"
            if not report.wants(name):
                continue
            calls = {
                "grpc": lambda r=rows: workers["grpc"].ms("", r, steps),
                "strategy": lambda r=rows: workers["strategy"].ms("", r, steps),
                "optimizer": lambda r=rows: workers["optimizer"].ms("float32", r, steps),
                "alone": lambda r=rows: workers["optimizer"].ms("alone", r, steps),
            }
            if network is not None:
                calls["optimizer, bfloat16"] = lambda r=rows: workers["optimizer"].ms(
                    "bfloat16", r, steps
                )
            add(report, name, in_turn(rounds, calls))


def add(report: Report, name: str, found: dict[str, list[float]]) -> None:
    """Rows of the contenders' times, each against gRPC."""
    grpc, alone = found.pop("grpc"), found.pop("alone")
    for contender, values in found.items():
        report.add(
            f"{name}/{contender}",
            ours=values,
            peer=grpc,
            peer_name=PEER,
            unit="ms",
            higher_is_better=False,
        )
    share = [
        [1 - a / b for a, b in zip(alone, step, strict=True)] for step in (found["optimizer"], grpc)
    ]
    report.add(
        f"{name}/communication",
        ours=share[0],
        peer=share[1],
        peer_name=PEER,
        unit="of step",
        higher_is_better=False,
    )


def main() -> None:
    flags = arguments(__doc__.splitlines()[0]).parse_args()
    report = Report(flags.only)
    if any(report.wants(f"tcp/{rows} rows") for rows in ROWS):
        bench(report, flags.rounds, "tcp")
    if any(report.wants(f"1 Gbit/s/{rows} rows") for rows in ROWS):
        if reason := why_not():
            print(f"the rows of 1 Gbit/s are left out: {reason}", file=sys.stderr)
        else:
            with Network(WORLD, Link("1gbit")) as network:
                bench(report, flags.rounds, "1 Gbit/s", network)
    report.save(flags.json)


if __name__ == "__main__":
    main()
