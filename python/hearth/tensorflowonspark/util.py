"""Helper functions for programs of TensorFlowOnSpark."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from hearth.cluster.node import gpu_info
from hearth.cluster.node.tensorboard import find_in_path as find_in_path
from hearth.errors import NotFoundError
from hearth.files.hadoop import add_hadoop_classpath
from hearth.spark import addresses


def single_node_env(
    num_gpus: int = 1,
    worker_index: int = -1,
    nodes: Sequence[Any] = [],
) -> None:
    """Lets a single process use `num_gpus` GPUs and find Hadoop's classes.

    Args:
        num_gpus: number of GPUs to use, all of which must be free; none if the host has no GPU.
        worker_index: this process's number on the host, which selects its block of GPUs; negative:
            random GPUs.
        nodes: ignored, for callers that pass it.
    """
    add_hadoop_classpath()
    if gpu_info.is_gpu_available() and num_gpus > 0:
        chosen = gpu_info.get_gpus(num_gpus, worker_index)
        os.environ["CUDA_VISIBLE_DEVICES"] = str(chosen)
    else:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


def get_ip_address() -> str:
    """This host's address on the interface of its default route; 127.0.0.1 if it has none."""
    return addresses.own_address()


def write_executor_id(num: int) -> None:
    """Writes `num` into the file executor_id of the working directory."""
    with open("executor_id", "w", encoding="utf-8") as file:
        file.write(str(num))


def read_executor_id() -> int:
    """The number in the file executor_id of the working directory.

    Raises:
        FileNotFoundError: write_executor_id() was not called here.
    """
    if not os.path.isfile("executor_id"):
        raise NotFoundError(f"No executor_id file found in {os.getcwd()}")
    with open("executor_id", encoding="utf-8") as file:
        return int(file.read())
