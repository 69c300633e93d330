"""Accesses Hadoop's file systems on an executor through Hadoop's shell, a JVM for each command.

A Python worker cannot call its executor's JVM, so this starts another JVM for a training's few
large files, with Spark's jars, the container's settings and its delegation tokens.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from hearth.errors import HearthError
from hearth.files.hadoop_errors import refusal
from hearth.files.user_name import user_name

_JVM = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
# Matches the shell's error lines, because Java logs to the same stream.
_ERROR_LINE = re.compile(r'(get|put|mkdir|ls): |Exception in thread "main" ')
# Time limit of a command. Copying the largest models takes minutes, so only an unresponsive server
# exceeds it.
_COMMAND_S = 1800.0


class HadoopShell:
    """Copies files between this host and any URI that Spark's Hadoop supports.

    Methods raise the one-line HearthError of hadoop_errors.refusal().
    """

    def __init__(self, settings: Mapping[str, str]):
        """`settings`: the session's Hadoop settings, which are added to the class path's."""
        self._settings = dict(settings)
        self._made: set[str] = set()  # folders created so far

    def fetch(self, uri: str, path: str) -> None:
        """Copies a file to the local `path`."""
        self._run(f"{uri} cannot be read", "-get", "-f", _literal(uri), path)

    def store(self, paths: Sequence[str], folder: str) -> None:
        """Copies local files, in order, into `folder`, which is created if it does not exist.

        Each copy appears under its name when it is complete, and replaces an existing file.
        """
        what = f"{folder} cannot be written"
        if folder not in self._made:
            self._run(what, "-mkdir", "-p", folder)
            self._made.add(folder)
        sources = [Path(path).absolute().as_uri() for path in paths]  # the shell would expand paths
        self._run(what, "-put", "-f", *sources, folder)

    def names(self, folder: str) -> list[str]:
        """The names in a folder; empty if the folder does not exist."""
        done = self._try("-ls", "-C", _literal(folder))
        if (refused := _refused(f"{folder} cannot be listed", done)) is not None:
            if getattr(refused, "code", "") == "not_found":
                return []
            raise refused
        return [line.rpartition("/")[2] for line in done.stdout.splitlines() if "/" in line]

    def _run(self, what: str, *arguments: str) -> None:
        if (refused := _refused(what, self._try(*arguments))) is not None:
            raise refused

    def _try(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory(prefix="hearth-hadoop-") as folder:
            # Settings are passed in a file, because other users can see the command line. The file
            # also serves as core-site.xml if the class path has none; without a core-site.xml the
            # shell does not start.
            site = Path(folder) / "core-site.xml"
            site.touch(mode=0o600)
            site.write_text(_site(self._settings), encoding="utf-8")
            shell = ["org.apache.hadoop.fs.FsShell", "-conf", str(site), *arguments]
            classes = f"{_class_path()}{os.pathsep}{folder}"
            java = [_java(), *_JVM, f"-Djava.io.tmpdir={folder}", "-cp", classes, *shell]
            environment = {**os.environ, "HADOOP_USER_NAME": hadoop_user()}
            options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "env": environment}
            try:
                return subprocess.run(
                    java, capture_output=True, text=True, timeout=_COMMAND_S, **options
                )
            except subprocess.TimeoutExpired:
                said = f"`{' '.join(arguments)}` did not finish within {_COMMAND_S:.0f} s"
                raise HearthError(f"Hadoop's shell: {said}") from None
            except OSError as error:
                raise HearthError(
                    f"cannot start Hadoop's shell on this executor: {error}; set JAVA_HOME "
                    "there (spark.executorEnv.JAVA_HOME)"
                ) from None


def hadoop_user() -> str:
    """The user under whom Spark runs this executor's tasks; without Kerberos only a name."""
    environment = os.environ
    return environment.get("HADOOP_USER_NAME") or environment.get("SPARK_USER") or user_name()


def use_core_as_hadoop_user() -> None:
    """Makes the core's HDFS clients in this process act as the user of the Spark task."""
    os.environ.setdefault("HADOOP_USER_NAME", hadoop_user())
    # With libhdfs, a JVM runs in this process, and its heap counts toward the executor's overhead.
    os.environ.setdefault("LIBHDFS_OPTS", "-Xmx128m")


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else shutil.which("java") or "java"


def _class_path() -> str:
    """The executor's class path on YARN; otherwise Hadoop's settings and Spark's jars."""
    if "CONTAINER_ID" in os.environ and os.environ.get("CLASSPATH"):
        return os.environ["CLASSPATH"]
    home = os.environ.get("SPARK_HOME")
    if not home:
        import pyspark

        home = str(Path(pyspark.__file__).parent)
    parts = [os.environ.get("HADOOP_CONF_DIR"), f"{home}/jars/*", os.environ.get("CLASSPATH")]
    return os.pathsep.join(part for part in parts if part)


def _site(settings: Mapping[str, str]) -> str:
    rows = [
        f"<property><name>{escape(key)}</name><value>{escape(value)}</value></property>"
        for key, value in settings.items()
    ]
    return "<configuration>" + "\n".join(rows) + "</configuration>"


def _literal(uri: str) -> str:
    """Escapes a name, because the shell expands patterns."""
    return "".join(f"\\{char}" if char in "*?[]{}\\" else char for char in uri)


def _refused(what: str, done: subprocess.CompletedProcess[str]) -> Exception | None:
    """The HearthError for a failed command; None if the command succeeded."""
    if not done.returncode:
        return None
    lines = done.stderr.splitlines()
    errors = [line for line in lines if _ERROR_LINE.match(line)]
    return refusal(what, "\n".join(errors or lines[:1]), hadoop_user())
