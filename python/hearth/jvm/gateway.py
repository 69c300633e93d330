"""Access to the JVM that started this process: its sessions and DataFrames."""

from __future__ import annotations

import os
import threading
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_attaching = threading.Lock()


def connect() -> Any:
    """Connects pyspark to the JVM; returns the gateway. Child processes do not inherit the
    gateway's secret.

    Raises:
        Py4JError: the JVM has ended, or another process listens on its port.
    """
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    gateway = launch_gateway()
    SparkContext._ensure_initialized(gateway=gateway)
    os.environ.pop("PYSPARK_GATEWAY_SECRET", None)
    return gateway


def session_of(java_session: Any) -> SparkSession:
    """A session of the JVM as a session of pyspark. The first call also wraps the JVM's
    SparkContext."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    with _attaching:
        context = SparkContext._active_spark_context
        if context is None:
            gateway = SparkContext._gateway
            contexts = gateway.jvm.org.apache.spark.api.java.JavaSparkContext
            java_context = contexts.fromSparkContext(java_session.sparkContext())
            conf = SparkConf(_jvm=gateway.jvm, _jconf=java_context.getConf())
            context = SparkContext(gateway=gateway, jsc=java_context, conf=conf)
        return SparkSession(context, java_session)
