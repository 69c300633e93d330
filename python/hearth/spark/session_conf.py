"""Temporary settings of a Spark SQL session, shared by concurrent jobs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hearth.errors import HearthError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class _Setting:
    """A setting that is currently overridden."""

    session: Any
    key: str
    value: str
    before: str | None  # the session's value; None: not set
    users: list[int] = field(default_factory=list)  # ids of the threads that use the setting


_set: list[_Setting] = []
_changed = threading.Condition()  # guards _set


@contextmanager
def session_conf(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Overrides Spark SQL settings in the block; a setting's last user restores its value.

    Threads that need the same value share it. A thread that needs another value waits until the
    current value is no longer used.

    Raises:
        HearthError: this thread already uses another value, so it would wait forever.
    """
    session = getattr(spark, "_jsparkSession", spark)
    user, taken = threading.get_ident(), []
    with _changed:
        if others := _others(session, values):
            logger.warning("waiting for another job of this Spark session, which needs %s", others)
            _changed.wait_for(lambda: not _others(session, values))
        try:
            for key, value in values.items():
                taken.append(_take(spark, session, key, value))
        except BaseException:
            _give_back(spark, taken, user)
            raise
    try:
        yield
    finally:
        with _changed:
            _give_back(spark, taken, user)


def _find(session: Any, key: str) -> _Setting | None:
    """Compares by equality, because several Python objects may refer to one JVM session."""
    return next((now for now in _set if now.key == key and now.session == session), None)


def _others(session: Any, values: Mapping[str, str]) -> dict[str, str]:
    """The settings that are currently overridden by other values than `values`."""
    found = {key: _find(session, key) for key in values}
    others = {key: now for key, now in found.items() if now and now.value != values[key]}
    for key, now in others.items():
        if threading.get_ident() in now.users:
            raise HearthError(
                f"a job that runs inside another job of this thread needs {key}={values[key]}, "
                f"but the outer job needs {now.value}: run the inner job after the outer job has "
                "ended, or in a newSession() of Spark"
            )
    return {key: now.value for key, now in others.items()}


def _take(spark: SparkSession, session: Any, key: str, value: str) -> _Setting:
    setting = _find(session, key)
    if setting is None:
        setting = _Setting(session, key, value, spark.conf.get(key, None))
        spark.conf.set(key, value)
        _set.append(setting)
    setting.users.append(threading.get_ident())
    return setting


def _give_back(spark: SparkSession, taken: list[_Setting], user: int) -> None:
    """Restores settings. Never raises, even if the session has ended, because an exception may be
    in progress.
    """
    for setting in taken:
        setting.users.remove(user)
    free = [setting for setting in taken if not setting.users]
    _set[:] = [setting for setting in _set if setting.users]
    _changed.notify_all()
    for setting in free:
        try:
            if setting.before is None:
                spark.conf.unset(setting.key)
            else:
                spark.conf.set(setting.key, setting.before)
        except Exception as error:
            logger.warning("cannot restore %s of the session: %s", setting.key, error)
