#!/usr/bin/env python3
"""PyTorch's DistributedDataParallel over the backend "hearth" against gloo, two processes.

`bench/torch_ddp.py --json FILE`. A step of three dense layers of 2048, of which about half is
communication over gloo, and all_reduce calls of several sizes; ours over tcp on the loopback
interface and in shared memory. All groups live in the same two processes and take turns.
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
from report import Report, alternate, arguments, seconds

WORLD = 2
WIDTH = 2048
BATCH = 128
STEPS = 10
SIZES = {"4 KB": (4 << 10, 300), "256 KB": (256 << 10, 100), "64 MB": (64 << 20, 5)}


def groups() -> dict[str, dist.ProcessGroup]:
    """One process group of all ranks for each contender."""
    found = {"gloo": dist.new_group(backend="gloo")}
    for name, transport in (("tcp", "tcp"), ("shared memory", "shm")):
        os.environ["HEARTH_TRANSPORT"] = transport
        found[name] = dist.new_group(backend="hearth")
    return found


def trainer(group: dist.ProcessGroup) -> Callable[[], float]:
    """A function for the mean milliseconds of one of STEPS steps of training."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(3)]
    parallel = DistributedDataParallel(torch.nn.Sequential(*layers), process_group=group)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=1e-4)
    batch = torch.randn(BATCH, WIDTH)

    def run() -> None:
        for _ in range(STEPS):
            optimizer.zero_grad()
            parallel(batch).square().mean().backward()
            optimizer.step()

    return lambda: measured(run) / STEPS


def reducer(group: dist.ProcessGroup, size: int, calls: int) -> Callable[[], float]:
    """A function for the mean milliseconds of one of `calls` calls of all_reduce in a row."""
    tensor = torch.zeros(size // 4)

    def run() -> None:
        for _ in range(calls):
            dist.all_reduce(tensor, group=group)

    return lambda: measured(run) / calls


def measured(run: Callable[[], None]) -> float:
    """Milliseconds, from when all ranks have come."""
    dist.barrier()
    return seconds(run) * 1e3


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
    contenders = groups()
    gloo = contenders.pop("gloo")
    rows = [("DDP step", trainer)]
    rows += [
        (f"all_reduce {name}", lambda group, s=size, c=calls: reducer(group, s, c))
        for name, (size, calls) in SIZES.items()
    ]
    for name, make in rows:
        for transport, group in contenders.items():
            ours, peer = alternate(asked.rounds, make(group), make(gloo))
            if asked.rank == 0:
                report.add(
                    f"{name}, {transport}",
                    ours=ours,
                    peer=peer,
                    peer_name="gloo",
                    unit="ms",
                    higher_is_better=False,
                )
    dist.barrier()
    dist.destroy_process_group()
    if second is not None:
        report.save(asked.json)
        second.wait()


if __name__ == "__main__":
    main()
