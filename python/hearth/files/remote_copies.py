"""Copies between this host and remote file systems.

The core copies from and to HDFS, in milliseconds. A library serves schemes that Spark's Hadoop does
not support. Hadoop's shell, which starts a JVM for each command, serves all other schemes, and HDFS
if the core cannot access it (for instance without WebHDFS).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from hearth.errors import HearthError
from hearth.files.core_files import CoreFiles
from hearth.files.hadoop_shell import HadoopShell
from hearth.files.library_files import LibraryFiles
from hearth.files.uri import CORE_SCHEMES, scheme

Result = TypeVar("Result")


class RemoteCopies:
    """Copies files for one task, with HadoopShell's methods and errors. Not thread-safe.

    If the core fails, tries the shell; if that fails, too, raises the shell's error. Once the shell
    has succeeded after the core failed, all later copies use the shell.
    """

    def __init__(self, settings: Mapping[str, str], libraries: Collection[str] = ()):
        """`settings`: see HadoopShell. `libraries`: the schemes that a library serves."""
        self._libraries = libraries
        self._shell = HadoopShell(settings)
        self._core: CoreFiles | None = CoreFiles()

    def fetch(self, uri: str, path: str) -> None:
        """Copies a file to the local `path`."""
        self._by_either(uri, lambda copies: copies.fetch(uri, path))

    def store(self, paths: Sequence[str], folder: str) -> None:
        """Copies local files into a folder."""
        self._by_either(folder, lambda copies: copies.store(paths, folder))

    def names(self, folder: str) -> list[str]:
        """The names in a folder; empty if the folder does not exist."""
        return self._by_either(folder, lambda copies: copies.names(folder))

    def _by_either(self, uri: str, act: Callable[[Any], Result]) -> Result:
        if scheme(uri) in self._libraries:
            return act(LibraryFiles())
        if self._core is None or scheme(uri) not in CORE_SCHEMES:
            return act(self._shell)
        try:
            return act(self._core)
        except (OSError, ValueError, HearthError) as error:
            why = error
        result = act(self._shell)
        print(f"hearth: {why}. using Hadoop's shell instead", file=sys.stderr, flush=True)
        self._core = None
        return result
