#!/usr/bin/env python3
"""All-reduce between two processes of one machine: ours against gloo of the torch wheel.

`bench/collective.py --json FILE`. Ours over tcp on the loopback interface, and in shared memory
with arrays from `Group.allocate`; gloo in the same processes, in turn. Milliseconds per call.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist

from hearth.collective.bench import SIZES
from hearth.native import _core
from report import Report, alternate, arguments, seconds

WORLD = 2
TIMEOUT_S = 120.0


def join(host: str, port: int, token: str, rank: int) -> _core.Member:
    """Reserves this rank's place in the cluster of the bench."""
    member = _core.Member(
        host=host, port=port, token=token, rank=rank, world=WORLD, host_name="localhost"
    )
    member.reserve("{}")
    return member


def connect_gloo(store: str, rank: int) -> None:
    """Joins gloo's default group through the file `store`."""
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=WORLD,
        timeout=timedelta(seconds=TIMEOUT_S),
    )


def timer(reduce: Callable[[object], object], array: object, calls: int) -> Callable[[], float]:
    """A function for the mean milliseconds of one of `calls` calls of `reduce` in a row."""

    def run() -> None:
        for _ in range(calls):
            reduce(array)

    def measure() -> float:
        dist.barrier()
        return seconds(run) * 1e3 / calls

    return measure


def check(group: _core.Group, array: np.ndarray) -> None:
    """Raises when an all-reduce of `array` gives a wrong sum."""
    base = np.arange(array.size, dtype=np.float32) % 1024
    array[:] = base + group.rank
    group.all_reduce(array)
    expected = base * WORLD + WORLD * (WORLD - 1) / 2
    if not np.array_equal(array, expected):
        raise RuntimeError(f"wrong sums over {group.description}")
    array[:] = 0


def bench(report: Report, rounds: int, member: _core.Member) -> None:
    """All rows; every rank runs this with the same arguments."""
    groups = {
        "tcp": _core.Group.connect(member, shared_memory=False, timeout_s=TIMEOUT_S),
        "shm": _core.Group.connect(member, timeout_s=TIMEOUT_S),
    }
    for transport, group in groups.items():
        for label, (size, calls) in SIZES.items():
            name = f"{transport}/{WORLD} ranks/{label}/float32"
            if not report.wants(name):
                continue
            ours = group.allocate(size // 4)
            check(group, ours)
            theirs = torch.zeros(size // 4)
            times = alternate(
                rounds,
                timer(group.all_reduce, ours, calls),
                timer(dist.all_reduce, theirs, calls),
            )
            report.add(
                name,
                ours=times[0],
                peer=times[1],
                peer_name="gloo",
                unit="ms",
                higher_is_better=False,
            )


class SilentReport(Report):
    """For the ranks that only take part."""

    def _print_last(self) -> None:
        pass


def run_rank(rank: int, options: argparse.Namespace, meeting: tuple[str, int, str, str]) -> Report:
    """Connects rank `rank` at (host, port, token, gloo's file) and runs the bench."""
    host, port, token, store = meeting
    member = join(host, port, token, rank)
    connect_gloo(store, rank)
    report = (Report if rank == 0 else SilentReport)(options.only)
    bench(report, options.rounds, member)
    member.done()
    dist.destroy_process_group()
    return report


def start_rank(rank: int) -> subprocess.Popen[str]:
    """Another process of this bench; where to meet comes through its standard input."""
    command = [sys.executable, *sys.argv, "--rank", str(rank)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, text=True)


def main() -> None:
    """Rank 0 starts the other rank, reports and saves the rows."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--rank", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank > 0:
        host, port, token, store = sys.stdin.readline().split()
        run_rank(options.rank, options, (host, int(port), token, store))
        return
    token = _core.new_token()
    coordinator = _core.Coordinator(world=WORLD, token=token)
    with tempfile.TemporaryDirectory() as folder:
        meeting = ("127.0.0.1", coordinator.port(), token, f"{folder}/gloo")
        others = [start_rank(rank) for rank in range(1, WORLD)]
        for process in others:
            process.stdin.write(" ".join(map(str, meeting)) + "\n")
            process.stdin.close()
        report = run_rank(0, options, meeting)
        for process in others:
            process.wait(timeout=TIMEOUT_S)
    report.save(options.json)


if __name__ == "__main__":
    main()
