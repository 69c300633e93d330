"""Runs the same function independently on many executors, mostly for parallel inference."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

from hearth.cluster.errors import ClusterError, own_error, reported_to_driver
from hearth.cluster.task.node_job import make_job, start_node
from hearth.errors import HearthError, invalid
from hearth.spark.access import spark_access
from hearth.spark.task_resources import task_gpus
from hearth.spark.token_forwarder import forward_tokens
from hearth.tensorflowonspark import TFSparkNode

logger = logging.getLogger(__name__)


def run(
    sc: Any,
    map_fn: Callable[..., Any],
    tf_args: Any,
    num_executors: int,
    use_barrier: bool = True,
) -> None:
    """Runs map_fn(tf_args, ctx) in `num_executors` tasks, in new processes; waits until all have
    ended.

    Sets worker_num, executor_id, num_workers, defaultFS and working_dir of ctx.

    Args:
        sc: the SparkContext, or a SparkSession.
        map_fn: the function.
        tf_args: map_fn's first argument; a list becomes sys.argv.
        num_executors: number of instances.
        use_barrier: start all instances at the same time, or none.

    Raises:
        ClusterError: an instance failed (the message has its traceback), or with a barrier: Spark
            has too few task slots.
        ValueError: num_executors is less than 1.
    """
    if num_executors < 1:
        raise invalid(f"num_executors is {num_executors}: at least 1 instance must run")
    context = getattr(sc, "sparkContext", sc)
    if use_barrier:
        _check_slots(context, num_executors)
    program = TFSparkNode.node_program(map_fn, tf_args).pickled()
    access = spark_access(sc)
    meta = {
        "cluster_template": {"worker": list(range(num_executors))},
        "num_executors": num_executors,
        "token": os.urandom(32).hex(),
        "coordinator": None,
        "tokens": forward_tokens(access.session),
        "default_fs": access.default_fs(),
        "working_dir": os.getcwd(),
        "release_port": True,
        "restart_count": 0,
    }
    options = TFSparkNode.node_options(tf_args)

    def start(iterator: Any) -> Any:
        with reported_to_driver():
            for number in iterator:
                start_node(make_job(meta, number, options, task_gpus()), program)
        return iter(())

    numbers = context.parallelize(range(num_executors), num_executors)
    tasks = (numbers.barrier() if use_barrier else numbers).mapPartitions(start)
    try:
        tasks.collect()
    except Exception as error:
        raise own_error(error) from error


def _check_slots(context: Any, needed: int) -> None:
    """Raises an error at once if a barrier stage has too few slots; Spark reports that only after
    retries."""
    from pyspark.sql import SparkSession

    from hearth.spark import preflight

    try:
        preflight.check(SparkSession(context), needed, logger.warning)
    except HearthError as error:
        raise ClusterError(str(error)) from None
