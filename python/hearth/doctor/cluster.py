"""Collects the facts of a cluster: of the driver, and of every executor that runs a task."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hearth.doctor import host_facts
from hearth.spark import addresses, failures, ports, preflight
from hearth.spark.access import ConnectSpark
from hearth.spark.executors import executor_count
from hearth.spark.profiles import GPUS
from hearth.spark.slots import slots_now

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_TASKS = 200
_PEERS = 8  # number of other tasks that each task connects to
_SOURCE = Path(host_facts.__file__)
Facts = dict[str, Any]


@dataclass(frozen=True)
class Survey:
    """The facts of the driver, the executors and Spark; see host_facts.facts()."""

    driver: Facts
    executors: list[Facts]
    spark: Facts = field(default_factory=dict)


def survey(spark: SparkSession, tasks: int | None = None) -> Survey:
    """Collects facts of the driver, of Hadoop and, in one barrier stage, of the executors.

    Raises:
        HearthError: `tasks` tasks cannot run at the same time.
    """
    tasks = tasks or min(slots_now(spark) or executor_count(spark), MOST_TASKS)
    preflight.check(spark, tasks)
    with ExitStack() as stack:
        clock, problem = None, None
        try:
            clock = stack.enter_context(_clock(spark))
        except OSError as error:
            problem = str(error)
        rows, failure = [], None
        try:
            rows = _ask_executors(spark, tasks, clock)
        except Exception as error:  # any error is reported to the user
            failure = failures.wrong_python(str(error)) or (
                f"{failures.cause_line(str(error))}: see the executors' logs in Spark's UI"
            )
    about = {"clock": clock, "listen_problem": problem, "executors_problem": failure}
    return Survey(host_facts.facts(), rows, about | _spark_facts(spark))


@contextmanager
def _clock(spark: SparkSession) -> Iterator[tuple[str, int]]:
    """Serves the driver's time at the address where a training's coordinator would listen."""
    if hasattr(spark, "_jsc"):
        bind, host = addresses.coordinator_hosts(spark)
    else:
        bind, host = ConnectSpark(spark).coordinator_hosts()
    tried = ports.ports_of(spark.conf.get, ports.COORDINATOR)
    server = ports.first_free(tried, "the driver", lambda p: socket.create_server((bind, p)))

    def answer() -> None:
        with suppress(OSError):  # the server was closed, after all answers
            while True:
                channel, _ = server.accept()
                with channel, suppress(OSError):
                    channel.sendall(struct.pack("!d", time.time()))

    thread = threading.Thread(target=answer, name="hearth-doctor", daemon=True)
    thread.start()
    try:
        yield host, server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


def _ask_executors(spark: SparkSession, tasks: int, clock: tuple[str, int] | None) -> list[Facts]:
    """The facts of each executor, from one of its tasks."""
    known = {key: ports.ports_of(spark.conf.get, key) for key in (ports.FEED, ports.NODE)}
    mesh = ports.ports_of(spark.conf.get, ports.MESH)
    # With Spark Connect, executors may not reach the client, so use any route out of the host.
    towards = clock if clock and hasattr(spark, "_jsc") else ("8.8.8.8", 53)
    examine = _task(_SOURCE.read_text(), clock, towards, mesh, known)
    frame = spark.range(tasks, numPartitions=tasks).mapInArrow(
        examine, "facts string", barrier=True
    )
    found = [json.loads(row[0]) for row in frame.collect()]
    by_executor: dict[tuple[str, str], Facts] = {}
    for facts in found:
        key = facts["host"], facts["executor"]
        kept = by_executor.setdefault(key, facts)
        kept["unreachable"] |= facts["unreachable"]
    return list(by_executor.values())


def _task(
    source: str,
    clock: tuple[str, int] | None,
    towards: tuple[str, int],
    mesh: list[int],
    known: dict[str, list[int]],
) -> Any:
    """Returns the tasks' function. It must not import hearth, because executors may lack it."""
    peers, json_ = _PEERS, json

    def examine(batches: Any) -> Any:
        import os

        import pyarrow
        from pyspark import BarrierTaskContext, SparkFiles

        for _ in batches:
            pass
        found: dict[str, Any] = {"__name__": "host_facts"}
        exec(compile(source, "host_facts.py", "exec"), found)
        context = BarrierTaskContext.get()
        facts = found["facts"]()
        facts["executor"] = f"{os.getcwd()} {SparkFiles.getRootDirectory()}"
        ahead = found["clock_ahead_s"](*clock) if clock else (None, None)
        facts["clock_ahead_s"], facts["driver_problem"] = ahead
        own = found["towards"](*towards)  # this sends no packets
        server, facts["mesh_problem"] = found["listen"](own, mesh)
        facts["port_problems"] = {}
        for setting, tried_ports in known.items():
            free, why = found["listen"](own, tried_ports)
            if free is None:
                facts["port_problems"][setting] = why
            else:
                free.close()
        bound = [facts["host"], own, server.getsockname()[1] if server else 0]
        servers = [json_.loads(each) for each in context.allGather(json_.dumps(bound))]
        rank = context.partitionId()
        others = [servers[(rank + step) % len(servers)] for step in range(1, len(servers))][:peers]
        tried = {f"{host} ({address}:{port})": (address, port) for host, address, port in others}
        answers = {name: found["connect_problem"](*to) for name, to in tried.items() if to[1]}
        facts["unreachable"] = {name: why for name, why in answers.items() if why}
        context.barrier()  # peers may still connect to this socket
        if server:
            server.close()
        yield pyarrow.record_batch({"facts": [json_.dumps(facts)]})

    return examine


def _spark_facts(spark: SparkSession) -> Facts:
    """Versions and settings of Spark, and the driver's access to Hadoop."""
    facts: Facts = {
        "version": spark.version,
        "master": spark.conf.get("spark.master", None),
        "connect": not hasattr(spark, "_jsc"),
        "gpus_of_a_task": spark.conf.get(GPUS, None)
        or spark.conf.get("spark.task.resource.gpu.amount", None),
    }
    if not hasattr(spark, "_jsc"):
        return facts
    jvm = spark._jvm
    facts["java"] = jvm.java.lang.System.getProperty("java.version")
    conf = spark._jsc.hadoopConfiguration()
    facts["file_system"] = conf.get("fs.defaultFS")
    facts["kerberos"] = jvm.org.apache.hadoop.security.UserGroupInformation.isSecurityEnabled()
    try:
        root = jvm.org.apache.hadoop.fs.Path("/")
        root.getFileSystem(conf).getFileStatus(root)
        facts["file_system_problem"] = None
    except Exception as error:
        facts["file_system_problem"] = str(error).strip().splitlines()[-1][:300]
    return facts
