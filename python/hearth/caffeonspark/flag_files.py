"""Resolves and checks the files of a run's flags, local or in a file system of Hadoop.

All flags follow CaffeOnSpark's rule: `file:` is local; a name without a scheme is in Spark's
default file system. There a relative name is relative to the user's home (locally: to the working
directory).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hearth.caffeonspark.flags import FlagError
from hearth.errors import HearthError
from hearth.files.hadoop_files import HadoopFiles
from hearth.files.uri import default_file_system, is_remote, local_path, scheme, serving
from hearth.spark.dynamic_allocation import refuse_for_ranks

if TYPE_CHECKING:
    from hearth.caffeonspark.config import Config


class FlagFiles:
    """Resolves and checks flags' files; raises FlagError or HearthError with one-line messages."""

    def __init__(self, files: HadoopFiles | None, default_fs: str):
        """`files`: the client of Spark's JVM; None with Spark Connect, where remote files are not
        checked."""
        self._files, self._default_fs = files, default_fs

    @classmethod
    def of(cls, spark: Any) -> FlagFiles:
        """Creates an object that accesses files through a Spark session."""
        return cls(HadoopFiles.of(spark), default_file_system(spark))

    def is_local(self, uri: str) -> bool:
        """Whether the driver finds `uri` in its own file system."""
        return not is_remote(uri if scheme(uri) else self._default_fs)

    def input(self, flag: str, uri: str) -> str:
        """Checks a file to read; returns its absolute local path or its full URI. Accepts ""."""
        if not uri or not self.is_local(uri):
            remote = self._remote_uri(uri)
            if remote and (files := serving(self._files, remote)):
                files.check_readable(flag, remote)
            return remote
        path = local_path(uri) or ""
        if not os.path.isfile(path):
            where = "" if scheme(uri) or not self._has_hadoop else "; hdfs:... names one in HDFS"
            raise FlagError(f"{flag} {uri}: there is no such file (looked for {path}{where})")
        return path

    def model(self, flag: str, uri: str) -> str:
        """Like input(), for a model NAME. If only NAME.h5 exists, which trainings write in HDF5
        format, returns that (and vice versa)."""
        other = uri.removesuffix(".h5") if uri.endswith(".h5") else f"{uri}.h5"
        try:
            return self.input(flag, uri)
        except (FlagError, HearthError) as error:
            try:
                return self.input(flag, other)
            except (FlagError, HearthError):
                raise error from None

    def output(self, flag: str, uri: str) -> str:
        """Like input(), for a file to write; creates and checks a remote file's folder."""
        if not uri or not self.is_local(uri):
            remote = self._remote_uri(uri)
            if remote and (files := serving(self._files, remote)):
                files.check_writable(flag, remote)
            return remote
        return local_path(uri) or ""

    def refuse_vanishing(self, flag: str, uri: str) -> None:
        """For a driver in a YARN container: raises FlagError if a path is relative."""
        if not uri or not self.is_local(uri) or os.path.isabs(uri.removeprefix("file:")):
            return
        raise FlagError(
            f"{flag} {uri} is in the working directory of the application master's container "
            f"({os.getcwd()}), which YARN removes when the application ends: use a URI that all "
            "hosts see (hdfs:///...)"
        )

    @property
    def _has_hadoop(self) -> bool:
        return is_remote(self._default_fs)

    def _remote_uri(self, uri: str) -> str:
        files = serving(self._files, uri) if uri else None
        return files.qualified(uri) if files is not None else uri


def check_before_start(
    config: Config, files: HadoopFiles, setting: Callable[[str, str], str]
) -> None:
    """Checks files and executors before Spark has an application.

    `setting(key, default)` returns a Spark setting.

    Raises:
        FlagError, HearthError: a check failed; the message is one line.
    """
    flag_files = FlagFiles(files, files.default)
    if setting("spark.submit.deployMode", "client") == "cluster":
        for flag, uri in written(config).items():
            flag_files.refuse_vanishing(flag, uri)
    if config.is_training:
        refuse_for_ranks(setting)
        for uri in filter(None, config.snapshot_model_file.split(",")):
            flag_files.input("-weights", uri)
        flag_files.input("-snapshot", config.snapshot_state_file)
        flag_files.output("-model", config.model_path)
    elif config.model_path:
        flag_files.model("-model", config.model_path)
    if (config.is_test or config.is_feature) and not flag_files.is_local(config.output_path):
        flag_files.output("-output", config.output_path)


def written(config: Config) -> dict[str, str]:
    """The output files of a run, by flag."""
    found = {"-model": config.model_path} if config.is_training else {}
    return found | ({"-output": config.output_path} if config.is_test or config.is_feature else {})
