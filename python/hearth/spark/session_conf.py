"""Settings of a Spark SQL session that a job needs for a while, among others that run there."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


@dataclass
class _Setting:
    """One that is set now."""

    value: str
    before: str | None  # the session's own
    users: int = 0


# By session and key. Python may have several objects for one session of the JVM, which are equal.
_set: dict[tuple[Any, str], _Setting] = {}
_changed = threading.Condition()  # guards it


@contextmanager
def session_conf(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Sets Spark SQL settings for a while; the last of those who set one puts the session's back.

    Threads that want the same values have them at the same time; who wants another value waits
    until nobody needs the one that is set. So a thread must not ask for another value within.
    """
    session = getattr(spark, "_jsparkSession", spark)
    taken: list[str] = []
    with _changed:
        if others := _others(session, values):
            logger.warning("waits for another job of this Spark session, which needs %s", others)
            _changed.wait_for(lambda: not _others(session, values))
        try:
            for key, value in values.items():
                _take(spark, (session, key), value)
                taken.append(key)
        except BaseException:
            _give_back(spark, session, taken)
            raise
    try:
        yield
    finally:
        with _changed:
            _give_back(spark, session, taken)


def _others(session: Any, values: Mapping[str, str]) -> dict[str, str]:
    """What is set now and is wanted otherwise."""
    found = {key: _set.get((session, key)) for key in values}
    return {key: now.value for key, now in found.items() if now and now.value != values[key]}


def _take(spark: SparkSession, name: tuple[Any, str], value: str) -> None:
    if name not in _set:
        before = spark.conf.get(name[1], None)
        spark.conf.set(name[1], value)
        _set[name] = _Setting(value, before)
    _set[name].users += 1


def _give_back(spark: SparkSession, session: Any, keys: list[str]) -> None:
    free = {}
    for key in keys:
        setting = _set[session, key]
        setting.users -= 1
        if setting.users == 0:
            free[key] = _set.pop((session, key)).before
    _changed.notify_all()
    for key, before in free.items():
        if before is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, before)
