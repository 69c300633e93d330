"""Resource profiles for tasks that need more or fewer GPUs than the session's settings assign."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from hearth.spark.dynamic_allocation import is_on
from hearth.spark.profiles import profile_of, task_cpus, task_profile


@dataclass(frozen=True)
class GpuProfiles:
    """Resource profiles; None means that the session's settings apply.

    `each`: for tasks with dedicated GPUs, as many as the settings for nodes say, or otherwise as
    many as other tasks have (at least one). `none`: for tasks that need no GPU.
    """

    each: Any = None
    none: Any = None


def gpu_profiles(session: Any) -> GpuProfiles:
    """The profiles for a session. Both are None if Spark does not support profiles, or if executors
    have no GPU.
    """
    if not hasattr(session, "_jsc"):
        return GpuProfiles()
    context = session.sparkContext
    conf = context.getConf()
    managed = conf.get("spark.master", "").startswith(("spark:", "yarn", "k8s:", "local-cluster"))
    if not managed or not float(conf.get("spark.executor.resource.gpu.amount", "0")):
        return GpuProfiles()
    asked = float(conf.get("spark.task.resource.gpu.amount", "0"))
    if asked and is_on(conf.get):  # another profile would need other executors
        return GpuProfiles()
    made = partial(_profile, context.applicationId, task_cpus(conf.get))
    none = made(0) if asked and _takes_profiles() else None
    own = task_profile(session.conf.get)
    if own is not None and "gpu" in own.taskResources:
        return GpuProfiles(own, none)
    return GpuProfiles(made(max(1, int(asked))), none)


def _takes_profiles() -> bool:
    from pyspark.sql import DataFrame

    return "profile" in inspect.signature(DataFrame.mapInArrow).parameters  # since Spark 4.0


@lru_cache
def _profile(application: str, cpus: Fraction, gpus: int) -> Any:
    """Cached per application, because Spark refuses a stage with two profiles, even equal ones."""
    return profile_of(cpus, gpus)
