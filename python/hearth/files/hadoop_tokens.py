"""Delegation tokens for the core's clients of HDFS in the driver's Python process."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

_VARIABLE = "HADOOP_TOKEN_FILE_LOCATION"


def lend_tokens(spark: Any) -> None:
    """Gives this process the tokens of Spark's JVM where that has logged in by a keytab
    (--principal and --keytab): Python has no ticket then.

    They go into a file that is the user's alone and ends with the process. What is there already
    (YARN's file in cluster mode, or the user's) stays.
    """
    if _VARIABLE in os.environ or not hasattr(spark, "_jvm"):
        return
    security = spark._jvm.org.apache.hadoop.security.UserGroupInformation
    if not security.isSecurityEnabled() or not security.getLoginUser().isFromKeytab():
        return
    credentials = security.getCurrentUser().getCredentials()
    if not credentials.numberOfTokens():
        return
    folder = tempfile.mkdtemp(prefix="hearth-tokens-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = Path(folder) / "tokens"
    path = spark._jvm.org.apache.hadoop.fs.Path(spark._jvm.java.net.URI(file.as_uri()))
    credentials.writeTokenStorageFile(path, spark._jsc.hadoopConfiguration())
    os.environ[_VARIABLE] = str(file)
