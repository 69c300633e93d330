#!/usr/bin/env python3
"""PyTorch's DistributedDataParallel over the backend "hearth" against gloo, two processes.

`bench/torch_ddp.py --json FILE`. A step of three dense layers of 2048 (50 MB of gradients) with
few and with more rows, and all_reduce calls of several sizes; ours over tcp on the loopback
interface and in shared memory. All groups live in the same two processes, of one thread each, and
take turns. A row "communication" is the share of our step (over tcp) and of gloo's step that is not
computation. The computation is measured as a step of the same layers without
DistributedDataParallel, which both processes execute at the same time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from hearth.torch import backend
from report import Report, arguments, in_turn, seconds

WORLD = 2
WIDTH = 2048
# With the first number of rows, half of gloo's step is communication.
ROWS = (32, 128)
STEPS = 10
TRANSPORTS = {"tcp": "tcp", "shared memory": "shm"}
SIZES = {"4 KB": (4 << 10, 300), "256 KB": (256 << 10, 100), "64 MB": (64 << 20, 5)}


def groups() -> dict[str, dist.ProcessGroup]:
    """One process group of all ranks for each contender."""
    found = {"gloo": dist.new_group(backend="gloo")}
    for name, transport in TRANSPORTS.items():
        os.environ["HEARTH_TRANSPORT"] = transport
        found[name] = dist.new_group(backend="hearth")
    return found


def trainer(group: dist.ProcessGroup | None, rows: int) -> Callable[[], float]:
    """Returns a function that measures the mean milliseconds per step, over STEPS training steps.

    Each rank trains on `rows` rows per step; without a group each rank trains alone.
    """
    torch.manual_seed(0)
    model: torch.nn.Module = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(3)))
    if group is not None:
        model = DistributedDataParallel(model, process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    batch = torch.randn(rows, WIDTH)

    def run() -> None:
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()

    return lambda: measured(run) / STEPS


def reducer(group: dist.ProcessGroup, size: int, calls: int) -> Callable[[], float]:
    """Returns a function that measures the mean milliseconds of one of `calls` all_reduces."""
    tensor = torch.zeros(size // 4)

    def run() -> None:
        for _ in range(calls):
            dist.all_reduce(tensor, group=group)

    return lambda: measured(run) / calls


def measured(run: Callable[[], None]) -> float:
    """Milliseconds, measured after a barrier of all ranks."""
    dist.barrier()
    return seconds(run) * 1e3


def add(report: Report, name: str, found: dict[str, list[float]]) -> None:
    """A row for each of our transports, against gloo."""
    for transport in TRANSPORTS:
        report.add(
            f"{name}, {transport}",
            ours=found[transport],
            peer=found["gloo"],
            peer_name="gloo",
            unit="ms",
            higher_is_better=False,
        )


def add_communication(report: Report, name: str, found: dict[str, list[float]]) -> None:
    """The share of a step that is not computation."""
    ours, gloo = (
        [1 - alone / step for alone, step in zip(found["alone"], found[key], strict=True)]
        for key in ("tcp", "gloo")
    )
    report.add(
        f"{name}, communication",
        ours=ours,
        peer=gloo,
        peer_name="gloo",
        unit="of step",
        higher_is_better=False,
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rank", type=int, default=0, help="for the second process")
    asked = parser.parse_args()
    os.environ.update(MASTER_ADDR="127.0.0.1", RANK=str(asked.rank), WORLD_SIZE=str(WORLD))
    os.environ.setdefault("MASTER_PORT", "29517")
    torch.set_num_threads(1)
    second = None
    if asked.rank == 0:
        second = subprocess.Popen([sys.executable, __file__, "--rank", "1", *sys.argv[1:]])
    backend.register()
    dist.init_process_group("gloo")
    report = Report(asked.only)
    all_groups = groups()
    for rows in ROWS:
        name = f"DDP step of {rows} rows"
        if not report.wants(name):
            continue
        calls = {key: trainer(group, rows) for key, group in all_groups.items()}
        found = in_turn(asked.rounds, {**calls, "alone": trainer(None, rows)})
        if asked.rank == 0:
            add_communication(report, name, found)
            add(report, name, found)
    for label, (size, count) in SIZES.items():
        name = f"all_reduce {label}"
        if report.wants(name):
            calls = {key: reducer(group, size, count) for key, group in all_groups.items()}
            found = in_turn(asked.rounds, calls)
            if asked.rank == 0:
                add(report, name, found)
    dist.barrier()
    dist.destroy_process_group()
    if second is not None:
        report.save(asked.json)
        second.wait()


if __name__ == "__main__":
    main()
