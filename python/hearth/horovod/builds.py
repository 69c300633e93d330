"""Build flags of Horovod, as in `horovod.common.util`."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from hearth.horovod.basics import ccl_built as ccl_built
from hearth.horovod.basics import ddl_built as ddl_built
from hearth.horovod.basics import gloo_built as gloo_built
from hearth.horovod.basics import mpi_built as mpi_built
from hearth.horovod.basics import nccl_built as nccl_built


def extension_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Whether operations for a framework are available: for "torch" and "tensorflow", if
    installed."""
    known = ext_base_name in ("torch", "tensorflow")
    return known and importlib.util.find_spec(ext_base_name) is not None


def check_extension(ext_name: str, ext_env_var: str, pkg_path: str, *args: str) -> None:
    """Raises ImportError if a framework ("horovod.torch") is not available."""
    name = ext_name.rpartition(".")[2]
    if not extension_available(name):
        raise ImportError(f"{ext_name} needs {name}, which is not installed or not supported")


def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    """False: GPU tensors are copied through the host's memory."""
    return False


def num_rank_is_power_2(num_rank: int) -> bool:
    """Whether Adasum supports this number of ranks."""
    return num_rank.bit_count() == 1


def split_list(l: Sequence[Any], n: int) -> list[Any]:  # noqa: E741
    """Splits a list into `n` runs whose lengths differ by at most one, longer ones first."""
    ends = [i * (len(l) // n) + min(i, len(l) % n) for i in range(n + 1)]
    return [l[start:end] for start, end in itertools.pairwise(ends)]


def is_iterable(x: Any) -> bool:
    """Whether the object is iterable."""
    return isinstance(x, Iterable)
