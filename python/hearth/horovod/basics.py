"""init() and shutdown(), ranks and sizes, and Horovod's build flags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hearth.errors import invalid
from hearth.horovod import process_sets as sets
from hearth.horovod.current import connect, engine
from hearth.horovod.current import is_initialized as is_initialized
from hearth.horovod.current import shutdown as shutdown


def init(comm: Sequence[int] | None = None, process_sets: Any = None) -> None:
    """Connects this process to the other ranks. Idempotent.

    Args:
        comm: not supported; the ranks are the processes that were started together.
        process_sets: a list of ProcessSet to register, the same on all ranks; or "dynamic", which
            is always allowed.

    Raises:
        ValueError: `comm` was given, or a process set has unknown ranks.
        TimeoutError, ConnectionError, HearthError: not all ranks connected, or one failed.
    """
    if comm:
        raise invalid(
            "init(comm=...) is not supported: use ProcessSet([...]) for a part of the ranks"
        )
    if isinstance(process_sets, str) and process_sets.lower() != "dynamic":
        raise invalid(f'process_sets={process_sets!r}: pass a list of ProcessSet or "dynamic"')
    if connect():
        sets.register(process_sets)


def rank() -> int:
    """This process's rank."""
    return engine().rank


def size() -> int:
    """The number of processes."""
    return engine().size


def local_rank() -> int:
    """This process's rank on its host."""
    return _neighbours().index(rank())


def local_size() -> int:
    """The number of processes on this host."""
    return len(_neighbours())


def cross_rank() -> int:
    """This host's number among the hosts that have a process of the same local rank."""
    return _peers().index(rank())


def cross_size() -> int:
    """The number of hosts that have a process of the same local rank."""
    return len(_peers())


def is_homogeneous() -> bool:
    """Whether all hosts have the same number of processes."""
    hosts = engine().hosts
    return len({hosts.count(host) for host in hosts}) == 1


def _neighbours() -> list[int]:
    hosts = engine().hosts
    return [r for r, host in enumerate(hosts) if host == hosts[rank()]]


def _peers() -> list[int]:
    hosts, own = engine().hosts, local_rank()
    return [r for r, host in enumerate(hosts) if hosts[:r].count(host) == own]


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Does nothing: Hearth records its own timeline (HEARTH_TIMELINE)."""


def stop_timeline() -> None:
    """Does nothing."""


def mpi_threads_supported() -> bool:
    """False: there is no MPI."""
    return False


mpi_enabled = mpi_built = ddl_built = ccl_built = cuda_built = rocm_built = mpi_threads_supported


def gloo_enabled() -> bool:
    """True: programs use it to select the path without MPI."""
    return True


gloo_built = gloo_enabled


def nccl_built() -> int:
    """0: GPU tensors are copied through the host's memory."""
    return 0
