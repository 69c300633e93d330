"""Assigns GPUs to a node."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from hearth.cluster.node import gpu_info
from hearth.errors import HearthError


def visible_gpus(job: Mapping[str, Any], members: Iterable[Mapping[str, Any]], host: str) -> str:
    """The node's CUDA_VISIBLE_DEVICES; empty if the node computes on the CPU.

    GPUs granted to the task by Spark take precedence. Otherwise, except on Kubernetes, the node
    gets a block of the host's free GPUs, one GPU by default, chosen by its number on the host.

    Raises:
        RuntimeError: fewer than `num_gpus` GPUs are available.
    """
    wanted, granted = job["num_gpus"], job["gpus"]
    if granted:
        return ",".join(granted if wanted is None else granted[:wanted])
    if wanted == 0:
        return ""
    on_kubernetes = "SPARK_EXECUTOR_POD_IP" in os.environ
    if on_kubernetes or not gpu_info.is_gpu_available():
        if wanted:
            raise HearthError(
                f"num_gpus requests {wanted} GPUs, but Spark granted none and this host "
                "has none: set spark.executor.resource.gpu.amount, or num_gpus=0"
            )
        return ""
    neighbours = sorted(node["executor_id"] for node in members if node["host"] == host)
    return ",".join(
        gpu_info.get_gpus(wanted or 1, neighbours.index(job["executor_id"]), gpu_info.AS_LIST)
    )
