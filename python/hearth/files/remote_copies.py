"""Copies between this host and remote file systems.

HDFS goes through the core, in milliseconds; schemes that Spark's Hadoop lacks go through a library;
all others, and clusters that the core cannot use (WebHDFS is off, say), through Hadoop's shell,
which starts a JVM for each command.
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
    """The copies of one task; one thread at a time. Same methods and errors as HadoopShell.

    If the core fails, the shell tries; if that fails, too, its reason is raised. Once the shell has
    succeeded, it does everything that follows.
    """

    def __init__(self, settings: Mapping[str, str], libraries: Collection[str] = ()):
        """`settings`: as of HadoopShell; `libraries`: the schemes that a library serves."""
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
