"""Files of any scheme that Spark's JVM supports (hdfs, viewfs, s3a, abfs, gs, file), on the driver.

Uses Hadoop's FileSystem with the cluster's settings, logins and tokens. Executors use
hadoop_shell.py. Thread-safe.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from hearth.errors import HearthError
from hearth.files.hadoop_errors import java_text, refusal


def hadoop_settings(spark: Any) -> dict[str, str]:
    """A session's Hadoop settings (spark.hadoop.*) by Hadoop's names, for hosts without access to
    Spark's JVM; empty with Spark Connect. May include access keys of object stores.
    """
    head = "spark.hadoop."
    pairs = spark.sparkContext.getConf().getAll() if hasattr(spark, "_jsc") else ()
    return {key.removeprefix(head): value for key, value in pairs if key.startswith(head)}


class HadoopFiles:
    """Reads and writes through Hadoop's FileSystem. Methods raise a one-line HearthError with the
    path, the user and what to do.
    """

    def __init__(self, jvm: Any, configuration: Any):
        """`jvm`: py4j's view of Spark's JVM; `configuration`: its Hadoop Configuration."""
        self._jvm, self._configuration = jvm, configuration

    @classmethod
    def of(cls, spark: Any) -> HadoopFiles | None:
        """The files of a session; None with Spark Connect, whose JVM is not accessible."""
        if not hasattr(spark, "_jvm"):
            return None
        return cls(spark._jvm, spark._jsc.hadoopConfiguration())

    @property
    def default(self) -> str:
        """The file system of paths without a scheme (fs.defaultFS)."""
        return str(self._configuration.get("fs.defaultFS"))

    @property
    def user(self) -> str:
        """The user name with which files are accessed."""
        users = self._jvm.org.apache.hadoop.security.UserGroupInformation
        return str(users.getCurrentUser().getShortUserName())

    def knows(self, name: str) -> bool:
        """Whether a file system for this scheme is configured and its jars are present."""
        try:
            self._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(name, self._configuration)
        except Exception:  # Hadoop's error, or a missing class
            return False
        return True

    def qualified(self, path: str) -> str:
        """Adds scheme and host to `path`; resolves a relative path against the user's home."""
        with self._refusals(path):
            system, target = self._open(path)
            return str(system.makeQualified(target).toString())

    def exists(self, uri: str) -> bool:
        """Whether a file or folder exists at the URI."""
        with self._refusals(uri):
            system, path = self._open(uri)
            return bool(system.exists(path))

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; empty if the folder does not exist."""
        with self._refusals(folder):
            system, path = self._open(folder)
            if not system.exists(path):
                return []
            return sorted(str(status.getPath().getName()) for status in system.listStatus(path))

    def located(self, uri: str) -> Iterator[tuple[str, int, bool, int, list[Any]]]:
        """Lists a folder's entries, or the one file, as (URI, bytes, whether it is a folder,
        modification time in ms since 1970, blocks).

        A block is (begin, end, names and addresses of the hosts that store it).
        """
        with self._refusals(uri):
            system, path = self._open(uri)
            listing = system.listLocatedStatus(path)
            while listing.hasNext():
                status = listing.next()
                blocks = [_block(block) for block in status.getBlockLocations() or ()]
                name = str(status.getPath().toString())
                is_folder, modified = bool(status.isDirectory()), status.getModificationTime()
                yield name, int(status.getLen()), is_folder, int(modified), blocks

    def read(self, uri: str) -> bytes:
        """The content of a small file."""
        with self._refusals(uri):
            system, path = self._open(uri)
            stream = system.open(path)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def write(self, uri: str, data: bytes) -> None:
        """Writes a small file under a temporary name and renames it, replacing an existing file."""
        with self._refusals(uri):
            system, path = self._open(uri)
            part = self._beside(path, "part")
            try:
                stream = system.create(part, True)
                try:
                    stream.write(bytearray(data))
                finally:
                    stream.close()
                self._replace(system, part, path)
            except BaseException:
                with suppress(Exception):  # raise the original error
                    system.delete(part, False)
                raise

    def copy(self, source: str, target: str) -> None:
        """Copies a file of any size, also between file systems."""
        with self._refusals(f"{source} to {target}"):
            system, path = self._open(source)
            other, target_path = self._open(target)
            util = self._jvm.org.apache.hadoop.fs.FileUtil
            if not util.copy(system, path, other, target_path, False, self._configuration):
                raise OSError(f"{source} cannot be copied")

    def _replace(self, system: Any, part: Any, path: Any) -> None:
        """Renames `part` to `path`. Sets an existing file aside first, and removes it last."""
        aside = self._beside(path, "old") if system.exists(path) else None
        # Hadoop's rename() returns False on failure, without a reason.
        if aside is not None and not system.rename(path, aside):
            raise OSError(f"the older file {path.toString()} cannot be renamed")
        if not system.rename(part, path):
            if aside is not None:
                system.rename(aside, path)
            raise OSError(f"the new file cannot be renamed to {path.toString()}")
        if aside is not None:
            system.delete(aside, False)

    def _beside(self, path: Any, kind: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path.getParent(), f".{uuid.uuid4()}.{kind}")

    def delete(self, uri: str) -> None:
        """Removes a file if it exists."""
        with self._refusals(uri):
            system, path = self._open(uri)
            system.delete(path, False)

    def check_readable(self, what: str, uri: str) -> None:
        """Raises HearthError, which starts with `what`, unless the file or folder exists."""
        with self._refusals(f"{what} {uri}"):
            system, path = self._open(uri)
            system.getFileStatus(path)

    def check_writable(self, what: str, uri: str) -> None:
        """Creates the folder of `uri` and tries to write there; raises like check_readable()."""
        with self._refusals(f"{what} {uri}"):
            system, path = self._open(uri)
            folder = path.getParent() or path
            system.mkdirs(folder)
            probe = self._jvm.org.apache.hadoop.fs.Path(folder, f".hearth-{uuid.uuid4()}.probe")
            system.create(probe, True).close()
            system.delete(probe, False)

    def _open(self, uri: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(uri)
        return path.getFileSystem(self._configuration), path

    @contextmanager
    def _refusals(self, what: str) -> Iterator[None]:
        try:
            yield
        except HearthError:
            raise
        except Exception as error:
            raise refusal(what, java_text(error), self.user) from None


def _block(location: Any) -> tuple[int, int, frozenset[str]]:
    begin = int(location.getOffset())
    addresses = (str(name).rpartition(":")[0] for name in location.getNames())
    hosts = frozenset((*map(str, location.getHosts()), *addresses))
    return begin, begin + int(location.getLength()), hosts
