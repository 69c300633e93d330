#!/usr/bin/env python3
"""hearth.torch on one GPU: DDP, FSDP2, a transformer fed by Hearth or from memory, all-reduce.

`bench/gpu_torch.py --json FILE`. One rank with `cpu:hearth,cuda:nccl`. The transformer is GPT-2 in
its small size (124 M parameters) in bfloat16 autocast, 50 steps of 16 x 512 tokens from Parquet
rows. MFU counts 6 FLOP per parameter and token against 989 TFLOP/s (NVIDIA's H100 data sheet,
dense bf16).
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
import torch.distributed as dist

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]

BATCH, LENGTH, STEPS, VOCABULARY = 16, 512, 50, 50257
PEAK_FLOPS = 989e12


def join() -> None:
    """This process as the one rank of a group with both backends."""
    from hearth.torch import backend

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    backend.register("the key of one rank")
    dist.init_process_group("cpu:hearth,cuda:nccl")


def ddp() -> dict[str, Any]:
    """A few steps of DDP: the loss falls, gradients are on the GPU."""
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(64, 1).cuda(), device_ids=[0])
    return {"name": "ddp", **falls(model, model.parameters())}


def fsdp() -> dict[str, Any]:
    """The same with FSDP2."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    fully_shard(model.cuda(), mesh=init_device_mesh("cuda", (1,)))
    return {"name": "fsdp2", **falls(model, model.parameters())}


def falls(model: Any, parameters: Any) -> dict[str, Any]:
    optimizer = torch.optim.SGD(parameters, lr=0.01)
    x = torch.randn(256, 64, device="cuda")
    y = x.sum(1, keepdim=True)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2, losses
    return {"first": losses[0], "last": losses[-1]}


def token_rows(folder: Path) -> str:
    """Parquet rows of token numbers."""
    random = np.random.default_rng(0)
    rows = BATCH * (STEPS + 4)
    tokens = pa.array(random.integers(0, VOCABULARY, rows * LENGTH, dtype=np.int64))
    table = pa.table({"tokens": pa.FixedSizeListArray.from_arrays(tokens, LENGTH)})
    pq.write_table(table, folder / "tokens.parquet", row_group_size=BATCH * 8)
    return str(folder / "tokens.parquet")


def batches_of_ours(path: str) -> Iterator[Any]:
    """The loader under test, behind one function."""
    from hearth.torch.feeds import FileFeed

    for (tokens,) in FileFeed(path, ("tokens",), (0, 1), 1).as_iterable_dataset(BATCH, ("tokens",)):
        yield tokens.pin_memory().cuda(non_blocking=True)


def fine_tuning(path: str, rounds: int) -> dict[str, Any]:
    """Tokens per second from the feed and from memory, in turn."""
    from torch.nn.parallel import DistributedDataParallel
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    bare = GPT2LMHeadModel(GPT2Config(use_cache=False)).cuda()
    parameters = sum(p.numel() for p in bare.parameters())
    model = DistributedDataParallel(bare, device_ids=[0])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    kept = list(batches_of_ours(path))

    def train(batches: Iterator[Any]) -> float:
        start, steps = 0.0, 0
        for number, tokens in enumerate(batches):
            if number == 3:
                torch.cuda.synchronize()
                start = time.perf_counter()
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.bfloat16):
                loss = model(input_ids=tokens, labels=tokens).loss
            loss.backward()
            optimizer.step()
            steps += number >= 3
        torch.cuda.synchronize()
        return steps * BATCH * LENGTH / (time.perf_counter() - start)

    ours, memory = [], []
    for _ in range(rounds):
        ours.append(train(batches_of_ours(path)))
        memory.append(train(iter(kept)))
    best = max(ours)
    return {
        "name": "fine-tuning", "tokens_per_s": best, "from_memory": max(memory),
        "ratio": best / max(memory), "parameters": parameters,
        "mfu": 6 * parameters * best / PEAK_FLOPS,
    }  # fmt: skip


def all_reduce() -> dict[str, Any]:
    """NCCL's launch on one rank, the path over the host for CPU tensors, and the rate of copies."""

    def microseconds(call: Callable[[], object], count: int) -> float:
        for _ in range(10):
            call()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / count * 1e6

    small = torch.ones(256, device="cuda")
    host = torch.ones(256)
    alone = dist.new_group(backend="nccl")
    big = torch.ones(64 << 20, device="cuda")
    pinned, pageable = torch.empty(64 << 20, pin_memory=True), torch.empty(64 << 20)
    rate = lambda us: 256 / 1024 / (us / 1e6)  # noqa: E731
    return {
        "name": "all-reduce",
        "nccl beside hearth, us": microseconds(lambda: dist.all_reduce(small), 500),
        "nccl alone, us": microseconds(lambda: dist.all_reduce(small, group=alone), 500),
        "hearth on the host, us": microseconds(lambda: dist.all_reduce(host), 500),
        "to pinned memory, GiB/s": rate(microseconds(lambda: pinned.copy_(big), 10)),
        "to pageable memory, GiB/s": rate(microseconds(lambda: pageable.copy_(big), 5)),
        "from pinned memory, GiB/s": rate(microseconds(lambda: big.copy_(pinned), 10)),
        "from pageable memory, GiB/s": rate(microseconds(lambda: big.copy_(pageable), 5)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    flags = parser.parse_args()
    torch.cuda.set_device(0)
    join()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="hearth-gpu-torch-") as folder:
        path = token_rows(Path(folder))
        for part in (ddp, fsdp, all_reduce, lambda: fine_tuning(path, flags.rounds)):
            try:
                rows.append(part())
            except Exception as error:  # a failure does not stop the others
                name = getattr(part, "__name__", "fine-tuning")
                rows.append({"name": name, "error": repr(error)[:800]})
            print(json.dumps(rows[-1]), flush=True)
            if flags.json:
                flags.json.write_text(json.dumps(rows, indent=1) + "\n")
    dist.destroy_process_group()
    if any("error" in row for row in rows):
        sys.exit("a part failed")


if __name__ == "__main__":
    main()
