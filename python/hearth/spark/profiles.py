"""Resource profiles for ranks' and nodes' tasks that need other resources than the session's tasks.

With Spark's stage-level scheduling, tasks that prepare rows use no GPUs, so executors' GPUs are
free for ranks.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hearth.errors import HearthError
from hearth.spark.dynamic_allocation import Setting
from hearth.spark.failures import cause_line

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile

CPUS = "spark.hearth.task.cpus"
GPUS = "spark.hearth.task.resource.gpu.amount"


def task_profile(setting: Setting, given: ResourceProfile | None = None) -> ResourceProfile | None:
    """Returns `given`, or otherwise the profile in the settings; None if these do not define one.

    Raises:
        TypeError: `given` is not a ResourceProfile.
        HearthError: a setting is not an amount.
    """
    if given is not None:
        _check_type(given)
        return given
    cpus, gpus = _amount(setting, CPUS), gpus_of_nodes(setting)
    if not cpus and not gpus:
        return None
    return profile_of(Fraction(cpus) or task_cpus(setting), gpus)


def profile_of(cpus: Fraction, gpus: float) -> ResourceProfile:
    """A profile of tasks with these cores (only whole ones before Spark 4.3) and GPUs."""
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    cores = int(cpus) if cpus.denominator == 1 else float(cpus)
    request = TaskResourceRequests().cpus(cores)
    if gpus:
        request = request.resource("gpu", gpus)
    return ResourceProfileBuilder().require(request).build


def gpus_of_nodes(setting: Setting) -> float:
    """The number of GPUs per rank or node in the settings; 0 if it is not set.

    Raises:
        HearthError: the setting is not a number of GPUs.
    """
    return _amount(setting, GPUS)


def _check_type(given: Any) -> None:
    from pyspark.resource import ResourceProfile

    if not isinstance(given, ResourceProfile):
        raise TypeError(
            f"profile is a {type(given).__name__}: give a pyspark.resource.ResourceProfile, such "
            "as ResourceProfileBuilder().require(requests).build"
        )


def _amount(setting: Setting, key: str) -> float:
    text = setting(key, "") or "0"
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    whole = amount == int(amount) if 0 <= amount < 1e6 else False
    if not whole and not (key == GPUS and 0 < amount <= 0.5):
        kinds = "a whole number, or a fraction of a GPU up to 0.5" if key == GPUS else "a number"
        raise HearthError(f"{key}={text}: it must be {kinds}")
    return amount


def slots_for(session: Any, profile: ResourceProfile | None) -> int:
    """The number of tasks with this profile that can run at once, in a classic session.

    Raises:
        HearthError: this cluster does not support the profile; the message is Spark's.
    """
    scala_context = session._jsc.sc()
    if profile is None:
        wanted = scala_context.resourceProfileManager().defaultResourceProfile()
    else:
        wanted = registered(session, profile)
    return scala_context.maxNumConcurrentTasks(wanted)


def mapped(session: Any, profile: ResourceProfile | None) -> dict[str, Any]:
    """The profile as mapInArrow()'s argument. Raises HearthError if Spark does not support it."""
    if profile is None:
        return {}
    if session.version.startswith("3."):
        raise HearthError(
            f"Spark {session.version} does not support a {described(profile)} for DataFrames "
            "(4.0 and later do): remove the profile and spark.hearth.task.*"
        )
    if not hasattr(session, "_jsc"):
        _register_with_server(session, profile)
    return {"profile": profile}


def _register_with_server(session: Any, profile: ResourceProfile) -> None:
    """Requests the profile's id from the Spark Connect server.

    Spark would request it through the active session of the action's thread, which has none.
    """
    threads = session._active_session
    before = getattr(threads, "session", None)
    threads.session = session
    try:
        _ = profile.id  # registers the profile
    except Exception as error:  # raised by Spark's client
        said = cause_line(str(error))
        raise HearthError(f"Spark refuses the resource profile: {said}") from error
    finally:
        threads.session = before


def registered(session: Any, profile: ResourceProfile) -> Any:
    """Registers the profile in a classic session; returns the JVM's object for counting slots.

    Raises:
        HearthError: the executors cannot run such tasks; the message is Spark's.
    """
    from py4j.protocol import Py4JJavaError

    try:
        if profile._java_resource_profile is None:  # the profile was created before the session
            profile._java_resource_profile = _in_jvm(session, profile)
        session._jsc.sc().resourceProfileManager().addResourceProfile(
            profile._java_resource_profile
        )
    except Py4JJavaError as error:
        raise HearthError(
            f"Spark refuses the resource profile: {error.java_exception.getMessage()}"
        ) from None
    return profile._java_resource_profile


def _in_jvm(session: Any, profile: ResourceProfile) -> Any:
    from pyspark.resource import (
        ExecutorResourceRequests,
        ResourceProfileBuilder,
        TaskResourceRequests,
    )

    jvm = session._jvm
    builder = ResourceProfileBuilder()
    builder.require(ExecutorResourceRequests(jvm, profile.executorResources))
    builder.require(TaskResourceRequests(jvm, profile.taskResources))
    return builder.build._java_resource_profile


def task_cpus(setting: Setting, profile: ResourceProfile | None = None) -> Fraction:
    """The number of cores per task; since Spark 4.3 it may be less than one."""
    if profile is not None and (asked := profile.taskResources.get("cpus")):
        return Fraction(asked.amount)
    return Fraction(setting("spark.task.cpus", "1"))


def described(profile: ResourceProfile) -> str:
    """Describes a task's resources."""
    asked = {name: f"{request.amount:g}" for name, request in profile.taskResources.items()}
    return "resource profile (" + ", ".join(f"{n} {name}" for name, n in asked.items()) + ")"
