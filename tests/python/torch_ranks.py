"""Processes that are ranks of one process group "hearth", connected by PyTorch's store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rank_programs import RankPrograms

START = """
import datetime, json, os, sys, time
import torch
import torch.distributed as dist
from hearth.torch import backend

rank, world, port, shared, case, seconds = json.loads(sys.argv[1])
torch.set_num_threads(1)
os.environ.update(RANK=str(rank), WORLD_SIZE=str(world))
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
os.environ["HEARTH_TRANSPORT"] = "shm" if shared else "tcp"
backend.register()

def start():
    dist.init_process_group("hearth", timeout=datetime.timedelta(seconds=seconds))

def say(value):
    print(json.dumps(value), flush=True)

start()
"""


class Ranks(RankPrograms):
    """Ranks of one process group."""

    def __init__(
        self,
        program,
        *,
        world=2,
        shared=True,
        case="",
        seconds=120,
        port=0,
        package="torch.distributed",
    ):
        """`port`: where rank 0 itself opens the store, as without torchrun. `package`: the package
        that the ranks' process has imported already.
        """
        from torch.distributed import TCPStore

        super().__init__(package)
        environment = {}
        if not port:
            self.store = TCPStore("127.0.0.1", 0, world, is_master=True, wait_for_workers=False)
            environment = {"TORCHELASTIC_USE_AGENT_STORE": "True"}
        for rank in range(world):
            given = [rank, world, port or self.store.port, shared, case, seconds]
            self.start(START + program, given, environment)


@pytest.fixture
def torch_ranks() -> Iterator[list[Ranks]]:
    """A list; ranks in it are ended after the test."""
    started: list[Ranks] = []
    yield started
    for each in started:
        each.end()
