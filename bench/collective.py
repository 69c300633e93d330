#!/usr/bin/env python3
"""All-reduce between processes of one machine: ours against gloo, Open MPI and TensorFlow's ring.

`bench/collective.py --json FILE`. Two and four processes. Ours runs over tcp on the loopback
interface, and in shared memory with NumPy arrays ("shm") or arrays from `Group.allocate` ("arena").
All contenders of a size take turns in one run. The torch wheel's gloo runs in the same processes;
Debian's Open MPI, and the ring over gRPC of TensorFlow's strategies, run in separate ones. The unit
is milliseconds per call; in `cpu` rows, milliseconds of rank 0's processor time. `--only
openmpi,grpc,overlap` runs some of gloo, bf16, cpu, openmpi, grpc, memcpy and overlap
(bench/overlap.py).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

import all_reduce_peers
import overlap
from hearth.native import _core
from hearth.ranks.bench import SIZES as COMMON_SIZES
from report import Report, alternate, arguments

WORLDS = (2, 4)
TIMEOUT_S = 120.0
SIZES = {**COMMON_SIZES, "244 MB": (244 << 20, 2)}
OURS = ("tcp", "tcp bf16", "shm", "arena")


@dataclass(frozen=True)
class Row:
    """One comparison: one of our transports against one peer."""

    peer: str
    ours: str
    cpu: bool = False

    def name(self, world: int, label: str) -> str:
        """Name of the row in the report."""
        kind = "cpu/" if self.cpu else ""
        return f"{kind}{self.peer}/{self.ours}/{world} ranks/{label}/float32"


def rows_of(world: int, label: str) -> Iterator[Row]:
    """The rows for that size."""
    two = world == 2
    if two or label in ("4 KB", "64 MB"):
        yield Row("gloo", "tcp")
    if two:
        yield Row("gloo", "tcp", cpu=True)
    if two and label != "244 MB":
        yield Row("gloo", "arena")
    if two and label == "64 MB":
        yield Row("gloo", "tcp bf16")
        yield Row("grpc", "tcp")
        yield Row("grpc", "shm")
        yield Row("grpc", "arena")
        yield Row("memcpy", "arena")
    if label != "244 MB":
        yield Row("openmpi tcp", "tcp")
        yield Row("openmpi shm", "shm")
        yield Row("openmpi shm", "arena")


class Rank:
    """One rank's contenders: its groups, gloo and, on rank 0, the peers in separate processes."""

    def __init__(self, member: _core.Member, peers: dict[str, all_reduce_peers.Peer]):
        self._peers = peers
        self._groups = {
            "tcp": _core.Group.connect(member, shared_memory=False, timeout_s=TIMEOUT_S),
            "shm": _core.Group.connect(member, timeout_s=TIMEOUT_S),
        }
        self.is_first = self._groups["shm"].rank == 0
        self.cpu: dict[str, list[float]] = {}

    def contender(self, name: str, size: int, calls: int) -> Callable[[], float]:
        """Measures one round of the row in milliseconds per call. All ranks call it together."""
        if name in OURS:
            return self._timer(name, self._ours(name, size), calls)
        if name == "gloo":
            theirs = torch.zeros(size // 4)
            return self._timer(name, lambda: dist.all_reduce(theirs), calls)
        if name == "memcpy":
            return self._memcpy(size, calls)
        peer = self._peers.get(name)
        return lambda: peer.measure(size, calls) if peer else 0.0

    def _ours(self, name: str, size: int) -> Callable[[], object]:
        group = self._groups["tcp" if name.startswith("tcp") else "shm"]
        arena = name == "arena"
        array = group.allocate(size // 4) if arena else np.zeros(size // 4, dtype=np.float32)
        check(group, array)
        if name != "tcp bf16":
            return lambda: group.all_reduce(array, timeout_s=TIMEOUT_S)
        request = _core.Request("all_reduce", array)
        request.wire = "bfloat16"
        return lambda: group.run(request, timeout_s=TIMEOUT_S)

    def _timer(self, name: str, call: Callable[[], object], calls: int) -> Callable[[], float]:
        def measure() -> float:
            dist.barrier()
            begun, busy = time.perf_counter(), time.process_time()
            for _ in range(calls):
                call()
            elapsed, busy = time.perf_counter() - begun, time.process_time() - busy
            self.cpu.setdefault(name, []).append(busy * 1e3 / calls)
            return elapsed * 1e3 / calls

        return measure

    def _memcpy(self, size: int, calls: int) -> Callable[[], float]:
        """Runs on one thread of rank 0, while the other ranks wait."""
        source, target = np.ones(size // 4, dtype=np.float32), np.ones(size // 4, dtype=np.float32)
        if not self.is_first:
            return lambda: 0.0

        def measure() -> float:
            begun = time.perf_counter()
            for _ in range(calls):
                np.copyto(target, source)
            return (time.perf_counter() - begun) * 1e3 / calls

        return measure


def check(group: _core.Group, array: np.ndarray) -> None:
    """Raises if an all-reduce of `array` returns a wrong sum."""
    base = np.arange(array.size, dtype=np.float32) % 1024
    array[:] = base + group.rank
    group.all_reduce(array, timeout_s=TIMEOUT_S)
    expected = base * group.world + group.world * (group.world - 1) / 2
    if not np.array_equal(array, expected):
        raise RuntimeError(f"wrong sums over {group.description}")
    array[:] = 0


def bench(report: Report, rounds: int, world: int, rank: Rank) -> None:
    """Measures all rows for that number of ranks; every rank calls it with the same arguments."""
    for label, (size, calls) in SIZES.items():
        rows = wanted(report, world, label)
        names = list(dict.fromkeys(name for row in rows for name in (row.ours, row.peer)))
        if not names:
            continue
        rank.cpu.clear()
        measured = alternate(rounds, *(rank.contender(name, size, calls) for name in names))
        if not rank.is_first:
            continue
        wall = dict(zip(names, measured, strict=True))
        # The first call of each contender is a warm-up.
        cpu = {name: values[1:] for name, values in rank.cpu.items()}
        for row in rows:
            add(report, row, row.name(world, label), cpu if row.cpu else wall, size)


def add(report: Report, row: Row, name: str, times: dict[str, list[float]], size: int) -> None:
    """Adds one row.

    Against memcpy the unit is GB/s on the bus: what each of two ranks sends and receives.
    """
    ours, peer = times[row.ours], times[row.peer]
    unit, more = "ms", False
    if row.peer == "memcpy":
        ours, peer = ([size / ms / 1e6 for ms in values] for values in (ours, peer))
        unit, more = "GB/s", True
    report.add(name, ours=ours, peer=peer, peer_name=row.peer, unit=unit, higher_is_better=more)


def wanted(report: Report, world: int, label: str) -> list[Row]:
    """The requested rows of that size whose contenders exist on this machine."""
    rows = [row for row in rows_of(world, label) if report.wants(row.name(world, label))]
    return [row for row in rows if not all_reduce_peers.why_not(row.peer)]


def connect_gloo(store: str, rank: int, world: int) -> None:
    """Joins gloo's default group through the file `store`."""
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=TIMEOUT_S),
    )


def run_rank(options: argparse.Namespace, rendezvous: tuple[str, int, str, str], report: Report,
             peers: dict[str, all_reduce_peers.Peer] | None = None) -> None:  # fmt: skip
    """Connects a rank at (host, port, token, gloo's file) and runs the bench."""
    host, port, token, store = rendezvous
    rank, world = options.rank, options.world
    member = _core.Member(
        host=host, port=port, token=token, rank=rank, world=world, host_name="localhost"
    )
    member.reserve("{}")
    connect_gloo(store, rank, world)
    bench(report, options.rounds, world, Rank(member, peers or {}))
    member.done()
    dist.destroy_process_group()


def run_world(options: argparse.Namespace, report: Report) -> None:
    """Starts the other ranks and the peers, and runs rank 0 here."""
    world = options.world
    rows = {row for label in SIZES for row in wanted(report, world, label)}
    if not rows:
        return
    token = _core.new_token()
    coordinator = _core.Coordinator(world=world, token=token)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ends:
        peers = {
            name: ends.enter_context(all_reduce_peers.start(name, world, Path(folder)))
            for name in sorted({row.peer for row in rows} - {"gloo", "memcpy"})
        }
        rendezvous = ("127.0.0.1", coordinator.port(), token, f"{folder}/gloo")
        others = [start_rank(rank, world) for rank in range(1, world)]
        for process in others:
            process.stdin.write(" ".join(map(str, rendezvous)) + "\n")
            process.stdin.close()
        run_rank(options, rendezvous, report, peers)
        for process in others:
            process.wait(timeout=TIMEOUT_S)


def start_rank(rank: int, world: int) -> subprocess.Popen[str]:
    """Runs another rank of this bench, which reads the rendezvous from its standard input."""
    command = [sys.executable, *sys.argv, "--rank", str(rank), "--world", str(world)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, text=True)


def main() -> None:
    """Runs rank 0 for each number of ranks, then the overlap if hosts can be emulated."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--rank", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--world", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    report = Report(options.only)
    if options.rank > 0:
        host, port, token, store = sys.stdin.readline().split()
        run_rank(options, (host, int(port), token, store), report)
        return
    if (reason := all_reduce_peers.why_not("openmpi")) and report.wants("openmpi"):
        print(f"bench/collective.py: without Open MPI's rows: {reason}", file=sys.stderr)
    for world in WORLDS:
        options.world = world
        run_world(options, report)
        report.save(options.json)
    overlap.bench(report, options.rounds)
    report.save(options.json)


if __name__ == "__main__":
    main()
