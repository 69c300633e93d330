"""Reduces metrics over all ranks."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from hearth.checkpoints.checkpoint_folder import some_of
from hearth.errors import invalid
from hearth.torch.peers import Peers


def reduced(metrics: Mapping[str, Any], weight: Any, peers: Peers) -> dict[str, float]:
    """Weighted means over the ranks; see TorchContext.reduce_metrics()."""
    said = [json.loads(text) for text in peers.exchange(json.dumps(_own(metrics, weight)))]
    for rank, each in enumerate(said):
        if "error" in each:
            raise invalid(f"reduce_metrics() on rank {rank}: {each['error']}")
    names = set(said[0]["values"])
    for rank, each in enumerate(said):
        if (others := set(each["values"])) != names:
            raise invalid(
                f"reduce_metrics() got different names on rank {rank} and on rank 0: "
                f"{some_of(names ^ others)} on one of them only; pass the same on every rank"
            )
    weights = [float.fromhex(each["weight"]) for each in said]
    total = math.fsum(weights)
    return {name: _mean(said, name, weights, total) for name in metrics}


def on_any_rank(flag: bool) -> bool:
    """Whether the flag is set on any rank of the process group; without a group, on this rank."""
    import torch
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return flag
    on_device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    most = torch.tensor([int(flag)], dtype=torch.int32, device=on_device)
    dist.all_reduce(most, dist.ReduceOp.MAX)
    return bool(most.item())


def _own(metrics: Mapping[str, Any], weight: Any) -> dict[str, Any]:
    """This rank's contribution: floats as hexadecimal text, which is exact; or an error."""
    try:
        share = _number("weight", weight)
        if not 0 <= share < math.inf:
            raise TypeError(f"the weight is {share:g}: it must be a number of rows")
        values = {str(name): _number(name, value).hex() for name, value in metrics.items()}
    except TypeError as error:
        return {"error": str(error)}
    return {"weight": share.hex(), "values": values}


def _number(name: object, value: Any) -> float:
    """A Python float of a number, or of a tensor or array of one value."""
    try:
        # Calls item(), because a loss requires grad.
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError):
        shape = getattr(value, "shape", None)
        what = type(value).__name__ + (f" of shape {list(shape)}" if shape is not None else "")
        raise TypeError(f"{name!r} is a {what}, not one number") from None


def _mean(said: list[Any], name: str, weights: list[float], total: float) -> float:
    """Adds in rank order, so the result is bitwise equal on every rank."""
    if total == 0:
        return math.nan
    values = (float.fromhex(each["values"][name]) for each in said)
    # The metric of a rank without rows may be nan.
    parts = [value * share for value, share in zip(values, weights, strict=True) if share]
    return sum(parts) / total
