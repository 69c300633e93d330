"""Gives a cluster access to Spark, through a classic session or Spark Connect."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from hearth.errors import HearthError, invalid
from hearth.files.uri import default_file_system
from hearth.spark.addresses import address_towards, coordinator_hosts
from hearth.spark.driver_python import use_driver_python
from hearth.spark.dynamic_allocation import HeldExecutors, is_on, refuse_for_nodes
from hearth.spark.profiles import mapped, registered, task_profile
from hearth.spark.slots import is_local, slots_now


def spark_access(sc: Any, profile: Any = None, holds: bool = True) -> ClassicSpark | ConnectSpark:
    """Creates the access for a SparkContext, or for a classic or Spark Connect SparkSession.

    Args:
        sc: the context or session.
        profile: the resource profile of tasks that start nodes; None: derived from the settings
            (profiles.py).
        holds: whether tasks with a profile run as long as their nodes.

    Raises:
        TypeError: `sc` has another type.
        HearthError: the session has ended.
    """
    if not hasattr(sc, "parallelize") and not hasattr(sc, "conf"):
        raise TypeError(
            f"expected a SparkSession or SparkContext, not {sc!r}: "
            "create one by SparkSession.builder.getOrCreate()"
        )
    if hasattr(sc, "parallelize"):
        from pyspark.sql import SparkSession

        return ClassicSpark(SparkSession(sc), profile, holds)
    kind = ClassicSpark if hasattr(sc, "_jsc") else ConnectSpark
    return kind(sc, profile, holds)


class _Session:
    """A classic or Spark Connect session.

    Attributes:
        profile: the resource profile of tasks that start nodes; None: Spark's default.
        holds: whether these tasks run as long as their nodes and so keep their resources.
        pins: whether pin() has an effect.
        keeps: whether nodes' executors can be protected from removal by dynamic allocation.
    """

    session: Any
    profile: Any
    holds: bool
    pins = keeps = False

    def conf(self, key: str, default: str) -> str:
        """A Spark setting, or `default` if it is not set."""
        return self.session.conf.get(key, default)

    def default_fs(self) -> str:
        """`fs.defaultFS` without the slashes of a bare file:///."""
        return _bare(default_file_system(self.session))

    def slots(self) -> int | None:
        """The number of tasks that can run at once now; None if Spark does not report it."""
        return slots_now(self.session, self.profile)

    def is_local(self) -> bool:
        """Whether the driver is the only executor, so nodes share the driver's standard error."""
        return False

    def check_nodes(self) -> None:
        """Raises HearthError if nodes that wait for rows would lose their executors."""
        if not self.holds:
            refuse_for_nodes(self.conf, can_keep=self.keeps)

    def release(self) -> None:
        """Releases the executors of all nodes started so far; never raises."""


class ClassicSpark(_Session):
    """A session whose driver is this process."""

    pins = keeps = True

    def __init__(self, session: Any, profile: Any = None, holds: bool = True):
        self.session = session
        self.handle = session.sparkContext  # named `sc` in the API
        if self.handle._jsc is None:
            raise HearthError("Spark's session has ended: start a new one by SparkSession.builder")
        use_driver_python(session)
        self._kept = HeldExecutors()
        self.profile = task_profile(session.conf.get, profile)
        self.holds = holds and self.profile is not None
        if self.profile is not None:
            registered(session, self.profile)

    def conf(self, key: str, default: str) -> str:
        return self.handle.getConf().get(key, default)

    def coordinator_hosts(self) -> tuple[str, str]:
        """(address to listen on, host for executors to connect to)."""
        chosen = os.environ.get("TFOS_SERVER_HOST")
        return (chosen, chosen) if chosen else coordinator_hosts(self.session)

    def is_local(self) -> bool:
        return is_local(self.conf("spark.master", ""))

    def pin(self, rows: Any) -> Any:
        """Returns the rows as an RDD or DataFrame whose partitions do not change when recomputed.

        A DataFrame is replanned for each action, depending on the current executors and measured
        sizes; the returned rows have a fixed plan.

        Raises:
            ValueError: Spark reports that the partitions may change (an INDETERMINATE RDD).
        """
        framed = hasattr(type(rows), "mapInArrow")
        planned = rows._jdf.queryExecution().toRdd() if framed else rows._jrdd.rdd()
        if planned.outputDeterministicLevel().toString() == "INDETERMINATE":
            raise invalid(
                "these rows may be in other partitions when Spark recomputes them (a "
                "repartition() of an RDD without a fixed order), so a cluster with restart=True "
                "would lose and repeat rows: write them to files first, checkpoint() "
                "the RDD, or use DataFrame.repartition(), which sorts them"
            )
        if not framed:
            return rows
        from pyspark.sql import DataFrame

        schema = rows._jdf.schema()
        session = self.session._jsparkSession
        return DataFrame(session.internalCreateDataFrame(planned, schema, False), self.session)

    def nodes(self, ids: Sequence[int]) -> Any:
        """An RDD of the nodes' ids, one per partition; one empty partition if there are none."""
        tasks = self.handle.parallelize(ids, max(1, len(ids)))
        return tasks if self.profile is None else tasks.withResources(self.profile)

    def run_on(self, nodes: Any, body: Callable[[Iterator[int]], Any]) -> Callable[[], Any]:
        """The action that runs `body` for each of nodes(), whose executors are held until
        release().
        """
        if is_on(self.conf) and not self.holds:
            return self._kept.action(nodes, body)
        return partial(nodes.foreachPartition, body)

    def release(self) -> None:
        self._kept.release()

    def thread(self, target: Callable[[], None]) -> threading.Thread:
        """Creates a thread that may run actions."""
        from pyspark import InheritableThread

        return InheritableThread(target=target)

    def tag(self, name: str) -> None:
        """Adds a tag to all further jobs of this thread."""
        self.handle.addJobTag(name)

    def cancel(self, name: str) -> None:
        """Cancels all threads' jobs with a tag. (A session's tags are per thread.)"""
        self.handle.cancelJobsWithTag(name)


class ConnectSpark(_Session):
    """A session with a remote driver. Executors must be able to connect to this process."""

    def __init__(self, session: Any, profile: Any = None, holds: bool = True):
        self.session = self.handle = session
        self.profile = task_profile(self.conf, profile)
        self.holds = holds and self.profile is not None

    def coordinator_hosts(self) -> tuple[str, str]:
        """(address to listen on, host for executors to connect to)."""
        chosen = os.environ.get("TFOS_SERVER_HOST")
        own = chosen or address_towards(self.session.client.host, 1)
        return own, own

    def pin(self, rows: Any) -> Any:
        """Returns the rows unchanged, because the client does not see Spark's plan."""
        return rows

    def nodes(self, ids: Sequence[int]) -> Any:
        """A DataFrame of the nodes' ids, one per partition."""
        if not ids:
            return self.session.range(0, 0, 1, 1)
        return self.session.range(ids[0], ids[-1] + 1, 1, len(ids))

    def run_on(self, nodes: Any, body: Callable[[Iterator[int]], Any]) -> Callable[[], Any]:
        """The action that runs `body` for each of nodes()."""
        asked = mapped(self.session, self.profile)
        return nodes.mapInArrow(partial(_run_on_ids, body), "id bigint", **asked).collect

    def thread(self, target: Callable[[], None]) -> threading.Thread:
        """Creates a thread that may run actions."""
        from pyspark import InheritableThread

        try:
            return InheritableThread(target=target, session=self.session)
        except TypeError:  # Spark 3.5, where threads inherit nothing
            return threading.Thread(target=target)

    def tag(self, name: str) -> None:
        """Adds a tag to all further jobs of this thread."""
        self.session.addTag(name)

    def cancel(self, name: str) -> None:
        """Cancels the jobs with a tag."""
        self.session.interruptTag(name)


def _run_on_ids(body: Callable[[Iterator[int]], Any], batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        body(iter(batch.column(0).to_pylist()))
    yield from ()


def _bare(uri: str) -> str:
    return uri[:-1] if uri.startswith("file://") and len(uri) > 7 and uri.endswith("/") else uri
