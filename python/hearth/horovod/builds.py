"""What a build of Horovod has, as programs ask `horovod.common.util` for it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from typing import Any

from hearth.horovod.basics import ccl_built as ccl_built
from hearth.horovod.basics import ddl_built as ddl_built
from hearth.horovod.basics import gloo_built as gloo_built
from hearth.horovod.basics import mpi_built as mpi_built
from hearth.horovod.basics import nccl_built as nccl_built


def extension_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Whether there are operations for a framework: "torch" or "tensorflow", where it is
    installed."""
    known = ext_base_name in ("torch", "tensorflow")
    return known and importlib.util.find_spec(ext_base_name) is not None


def check_extension(ext_name: str, ext_env_var: str, pkg_path: str, *args: str) -> None:
    """Raises ImportError where there are no operations for a framework ("horovod.torch")."""
    name = ext_name.rpartition(".")[2]
    if not extension_available(name):
        raise ImportError(f"{ext_name} needs {name}, which is not installed or not supported")


def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    """False: tensors of GPUs are copied through the host's memory."""
    return False


def num_rank_is_power_2(num_rank: int) -> bool:
    """Whether Adasum can combine so many ranks."""
    return num_rank.bit_count() == 1


def split_list(l: Sequence[Any], n: int) -> list[Any]:  # noqa: E741
    """The elements as `n` runs whose lengths differ by one at most, the longer ones first."""
    ends = [i * (len(l) // n) + min(i, len(l) % n) for i in range(n + 1)]
    return [l[start:end] for start, end in zip(ends, ends[1:], strict=False)]


def is_iterable(x: Any) -> bool:
    """Whether a for loop can run over it."""
    return isinstance(x, Iterable)
