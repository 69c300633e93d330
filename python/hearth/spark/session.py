"""Creates the Spark session: the submitted one, or a small cluster on this machine."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hearth.errors import HearthError
from hearth.files.hadoop_files import HadoopFiles
from hearth.spark import java_start
from hearth.spark.driver_python import use_driver_python
from hearth.spark.user_settings import DRIVER_OPTIONS, joined_options, user_settings, with_users

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    # Called with Spark's file systems and a function that returns a Spark setting.
    Check = Callable[[HadoopFiles, Callable[[str, str], str]], None]

# Limits Arrow batches by bytes, so that a batch of images stays near the ring's block size.
ARROW_CONF = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(4 << 20),
}
# By default, Spark takes ten minutes to report that there are too few slots for a barrier stage.
BARRIER_CONF = {
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "3",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "2s",
}
# JVM options for sessions that last a minute or two. The second compiler tier and parallel
# collectors would slow down the JVM's start, by half on two cores.
_SHORT_LIVED_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
_QUIET = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"


def as_session(spark: Any) -> SparkSession:
    """The SparkSession of a session (classic or Connect) or SparkContext; None: the active one."""
    from pyspark.sql import SparkSession

    if spark is None or hasattr(spark, "parallelize"):
        spark = SparkSession.builder.getOrCreate()
    use_driver_python(spark)
    return spark


def active_session() -> SparkSession | None:
    """This thread's active session, or otherwise this process's, or None.

    A thread has no active session after Ctrl-C interrupted a call: this closes its connection to
    the JVM, which stores the active session by thread.
    """
    from pyspark.sql import SparkSession

    active: SparkSession | None = SparkSession.getActiveSession()
    return active or getattr(SparkSession, "_instantiatedSession", None)


def start(
    app_name: str,
    executors: int = 2,
    master: str | None = None,
    check: Check | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Starts the session of a command-line run, or returns the existing one.

    Under spark-submit, uses the submitted settings. Otherwise uses `master`, $MASTER, or a
    local-cluster of `executors` single-task executors that share this machine's cores. `check` is
    called after Spark's JVM has started, and before the application starts. The settings of `conf`
    take precedence over all others; those of spark-defaults.conf and $PYSPARK_SUBMIT_ARGS take
    precedence over Hearth's. The user's JVM options are appended to Hearth's.

    Raises:
        HearthError: the master is YARN, but its location is not configured.
        Exception: any exception of `check`.
    """
    from pyspark.sql import SparkSession

    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    builder, conf = SparkSession.builder.appName(app_name), conf or {}
    defaults = {**ARROW_CONF, **BARRIER_CONF}
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit started the JVM already
        _before_the_application(check)
        return _configured(builder, with_users(defaults, _submitted()) | conf).getOrCreate()
    os.environ.setdefault("PYSPARK_PYTHON", conf.get("spark.pyspark.python", sys.executable))
    master = master or os.environ.get("MASTER")
    _require_hadoop_settings(master)
    # A running JVM continues to use the folders with which it was started.
    ours = master is None and not java_start.is_running()
    user = user_settings() | conf
    folders = _private_folders() if ours else []
    if ours:
        os.environ["SPARK_HOME"] = str(folders[0])
    defaults |= {"spark.ui.showConsoleProgress": "false", DRIVER_OPTIONS: _QUIET}
    if master is None:
        defaults["spark.python.daemon.module"] = "hearth.spark.worker_daemon"
    settings = with_users(defaults, user)
    if master is None:
        own = _local_cluster_conf(executors)
        settings |= own | conf | joined_options(own, user)
    settings |= {key: value for key, value in conf.items() if key not in settings}
    settings["spark.master"] = master or _local_cluster(executors)
    with java_start.killed_on_interrupt():
        java_start.launch({"spark.app.name": app_name, **settings}, folders[1:])
        _before_the_application(check)
        session = _configured(builder, settings).getOrCreate()
    for folder in folders:  # the JVM removes them even if Python is killed
        java = session._jvm
        manager = java.org.apache.spark.util.ShutdownHookManager
        manager.registerShutdownDeleteDir(java.java.io.File(str(folder)))
    atexit.register(_stop, session)  # without stop(), local-cluster logs errors at exit
    return session


def stop(session: SparkSession, failed: bool = False) -> None:
    """Ends a session; if its program has `failed`, reports that to YARN.

    Without such a report, YARN shows SUCCEEDED once the driver has ended the session.
    """
    if failed and hasattr(session, "_jsc"):
        with suppress(Exception):  # the JVM has ended, or Spark is too old
            session._jsc.sc().stop(1)
    session.stop()


def _require_hadoop_settings(master: str | None) -> None:
    named = os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")
    if (master or "").startswith("yarn") and not named:
        raise HearthError(
            "--master yarn: YARN's location is unknown; set HADOOP_CONF_DIR to the folder with "
            "the cluster's core-site.xml, hdfs-site.xml and yarn-site.xml"
        )


def _before_the_application(check: Check | None) -> None:
    """Calls `check` with the settings of Spark's JVM, before the SparkContext is created."""
    if check is None:
        return
    from pyspark import SparkContext

    SparkContext._ensure_initialized()
    jvm = SparkContext._jvm
    conf = jvm.org.apache.spark.SparkConf()
    hadoop = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().newConfiguration(conf)
    check(HadoopFiles(jvm, hadoop), lambda key, default: str(conf.get(key, default)))


def _submitted() -> dict[str, str]:
    """The settings that spark-submit passed."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _stop(session: SparkSession) -> None:
    with suppress(OSError):  # raised if the JVM was killed
        session.stop()


def _configured(builder: SparkSession.Builder, conf: dict[str, str]) -> SparkSession.Builder:
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder


def _cores_per_executor(executors: int) -> int:
    return max(1, (os.cpu_count() or 1) // executors)


def _local_cluster(executors: int) -> str:
    return f"local-cluster[{executors},{_cores_per_executor(executors)},1024]"


def writable_home() -> Path:
    """Creates a folder, removed at exit, to be used as SPARK_HOME instead of the installation.

    Executors work in $SPARK_HOME/work, which may not be writable in a Python installation. The
    folder contains links to everything else in the installation. If executors run this process's
    Python, Spark's archive of pyspark is omitted, because each process that imports modules from it
    compiles them, which takes a second; installed modules are already compiled.
    """
    import pyspark
    from pyspark.find_spark_home import _find_spark_home

    left_out = {"work"}
    original = Path(pyspark.__file__).parent
    if not (original / "bin").is_dir():  # pyspark is in a Spark distribution's python folder
        original = Path(_find_spark_home()).resolve()
    elif os.environ.get("PYSPARK_PYTHON", sys.executable) == sys.executable:
        left_out.add("python")
    home = _folder_until_exit(tempfile.gettempdir())
    for entry in original.iterdir():
        if entry.name not in left_out:
            (home / entry.name).symlink_to(entry)
    return home


def _private_folders() -> list[Path]:
    """Creates writable_home(), and a folder for Spark's temporary files on each disk."""
    named = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    parents = [folder for folder in named if folder and os.access(folder, os.W_OK)]
    return [writable_home(), *map(_folder_until_exit, parents or [tempfile.gettempdir()])]


def _folder_until_exit(parent: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="hearth-spark-", dir=parent))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _local_cluster_conf(executors: int) -> dict[str, str]:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    cores = _cores_per_executor(executors)
    return {
        "spark.task.cpus": str(cores),
        "spark.cores.max": str(cores * executors),  # minRegisteredResourcesRatio refers to it
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        DRIVER_OPTIONS: f"{_QUIET} {_SHORT_LIVED_JVM}",
        "spark.executor.extraJavaOptions": _SHORT_LIVED_JVM,
        "spark.sql.shuffle.partitions": str(executors),
    }
