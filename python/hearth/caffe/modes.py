"""Process-wide settings: device, random seed, log, ranks."""

from __future__ import annotations

import os
import time
import warnings
from itertools import count
from typing import Any, NoReturn

from hearth.errors import UnimplementedError, invalid
from hearth.native import _caffe

__all__ = [
    "NCCL",
    "TEST",
    "TRAIN",
    "Timer",
    "has_nccl",
    "init_log",
    "layer_type_list",
    "log",
    "set_device",
    "set_mode_cpu",
    "set_mode_gpu",
    "set_multiprocess",
    "set_random_seed",
    "set_solver_count",
    "set_solver_rank",
    "solver_count",
    "solver_rank",
]

TRAIN = 0
TEST = 1

_gpu: dict[str, Any] = {"mode": False, "device": 0}
_ranks = {"count": 1, "rank": 0}
_seeds: Any = None


def phase_name(phase: int | str) -> str:
    """The engine's name of a phase: TRAIN or TEST."""
    if phase in (TRAIN, "TRAIN"):
        return "TRAIN"
    if phase in (TEST, "TEST"):
        return "TEST"
    raise invalid(f"phase {phase!r} is neither caffe.TRAIN nor caffe.TEST")


def set_mode_cpu() -> None:
    """Nets and solvers built from now on compute on the CPU, which is the default."""
    _gpu["mode"] = False
    _caffe.use_cpu()


def set_mode_gpu() -> None:
    """Nets and solvers built from now on compute on the GPU of set_device(), by default GPU 0.

    Without a usable CUDA device, this warns, and nets compute on the CPU. Unlike in Caffe, a net
    stays on the device for which it was built.

    Raises:
        ValueError: there are CUDA devices, but not the one that set_device() selected.
    """
    if _caffe.count_gpus() == 0:
        warnings.warn("there is no CUDA device here: nets compute on the CPU", stacklevel=2)
        return
    _caffe.use_gpu(_gpu["device"])
    _gpu["mode"] = True


def set_device(device: int) -> None:
    """Sets the number of the GPU for nets built from now on, in GPU mode.

    Raises:
        ValueError: `device` is negative; or the mode is GPU, and there is no such device.
    """
    if device < 0:
        raise invalid(f"device {device} is not a valid GPU number")
    if _gpu["mode"]:
        _caffe.use_gpu(device)
    _gpu["device"] = device


def set_random_seed(seed: int) -> None:
    """Makes fillers, dropout and augmentation of nets built from now on repeatable."""
    global _seeds
    _seeds = count(seed & (2**62 - 1))


def next_seed() -> int:
    """The seed of the next net, from set_random_seed or otherwise from the operating system."""
    return next(_seeds) if _seeds is not None else int.from_bytes(os.urandom(7), "little")


def set_solver_count(solvers: int) -> None:
    """Stores the number of solvers that train together, for solver_count()."""
    if solvers < 1:
        raise invalid(f"set_solver_count({solvers}): the number of solvers must be at least 1")
    _ranks["count"] = solvers


def set_solver_rank(rank: int) -> None:
    """Stores this process's rank among the solvers."""
    if rank < 0:
        raise invalid(f"a solver cannot have the rank {rank}")
    _ranks["rank"] = rank


def solver_count() -> int:
    """The value of set_solver_count, by default 1."""
    return _ranks["count"]


def solver_rank() -> int:
    """The value of set_solver_rank, by default 0."""
    return _ranks["rank"]


def set_multiprocess(multiprocess: bool) -> None:
    """Has no effect; use CaffeOnSpark or `hearth` for distributed training."""


def has_nccl() -> bool:
    """Returns False, because Hearth has no pycaffe NCCL class."""
    return False


class NCCL:
    """pycaffe's multi-GPU training, which Hearth does not support: raises NotImplementedError."""

    def __init__(self, *arguments: Any) -> NoReturn:
        raise UnimplementedError(
            "hearth.caffe has no NCCL: train on several devices or machines with "
            "hearth.caffeonspark (-devices, -clusterSize)"
        )

    @staticmethod
    def new_uid() -> NoReturn:
        """Raises NotImplementedError, like the class NCCL."""
        NCCL()


class Timer:
    """Measures the wall-clock time between start() and stop(), in milliseconds."""

    def __init__(self) -> None:
        self._started = self._stopped = 0.0

    def start(self) -> None:
        """Starts the measurement."""
        self._started = self._stopped = time.perf_counter()

    def stop(self) -> None:
        """Ends the measurement."""
        self._stopped = time.perf_counter()

    @property
    def ms(self) -> float:
        """Milliseconds between the last start() and stop()."""
        return 1000 * (self._stopped - self._started)


def init_log(level: int = 0, stderr: bool = True) -> None:
    """Sets the lowest level logged on stderr: 0 information, 1 warnings, 2 and above errors.

    If `stderr` is false, only errors are logged, because there is no other log. The environment
    variable GLOG_minloglevel sets the level when hearth.caffe is imported.
    """
    _caffe.set_log_level(level if stderr else max(level, 2))


def log(message: str) -> None:
    """Writes a line of information to the log."""
    _caffe.log(message)


def layer_type_list() -> list[str]:
    """The names of all layer types, sorted."""
    return _caffe.layer_types()


_level = os.environ.get("GLOG_minloglevel", "")  # noqa: SIM112
if _level.isdigit():
    init_log(int(_level))
