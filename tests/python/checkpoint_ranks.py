"""Programs whose ranks write checkpoints, run as plain processes without Spark."""

from __future__ import annotations

import pytest
import torch

from hearth.torch.context import TorchContext

needs_fsdp2 = pytest.mark.skipif(
    torch.__version__ < (2, 7), reason="FSDP2 computes on CPUs from PyTorch 2.7 on"
)

CONTEXT = """
from hearth.torch.context import TorchContext

class Manager:
    def __init__(self):
        self.commits, self.warnings = 0, []
    def note_commit(self):
        self.commits += 1
    def warn(self, text):
        self.warnings.append(text)

folders = json.loads(case)
ctx = TorchContext(
    node_id=rank, role="worker", index=rank, cluster_spec={"worker": ["127.0.0.1:1"] * world},
    default_fs="file://", working_dir="/", mgr=Manager(),
    checkpoint_dir=folders[min(rank, len(folders) - 1)],
)

def make(seed=0):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout())
    return model, torch.optim.Adam(model.parameters(), lr=0.1)

def train(model, optimizer, first, last):
    for step in range(first, last):
        optimizer.zero_grad()
        rows = torch.full((2, 4), float(step)) + torch.arange(2.0)[:, None]
        model(rows).square().sum().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()

def bits(*modules):
    return [t.tolist() for m in modules for t in m.state_dict().values()]

def attempt(call):
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""

SHARDED = """
from torch.distributed.fsdp import fully_shard
model, optimizer = make()
fully_shard(model[0]); fully_shard(model)
model[1].momentum = None
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

def step(model, optimizer, number):
    optimizer.zero_grad()
    model(torch.arange(8.0).reshape(2, 4) + number).square().sum().backward()
    optimizer.step()

def whole(model):
    return [t.full_tensor().tolist() if hasattr(t, "full_tensor") else t.tolist()
            for t in model.state_dict().values()]
"""


def said(group, world=2):
    return [group.say(rank) for rank in range(world)]


class Manager:
    def __init__(self):
        self.commits, self.warnings = 0, []

    def note_commit(self):
        self.commits += 1

    def warn(self, text):
        self.warnings.append(text)


def alone(folder, **values):
    """A context for a program with a single rank."""
    known = {"role": "worker", "cluster_spec": {"worker": ["127.0.0.1:1"]}, "working_dir": "/"}
    return TorchContext(
        node_id=0,
        index=0,
        default_fs="file://",
        mgr=Manager(),
        checkpoint_dir=str(folder),
        **{**known, **values},
    )
