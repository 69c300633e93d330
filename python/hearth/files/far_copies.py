"""Copies between this host and other file systems: HDFS by the core, in milliseconds; schemes that
Spark's Hadoop does not know by a library; all others, and a cluster that the core cannot use
(WebHDFS is off, say), by Hadoop's shell, a JVM each time.
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


class FarCopies:
    """One task's; one thread at a time. Its methods are HadoopShell's, and raise the same errors.

    Where the core fails the shell tries, too, and its reason is the one that counts. If it
    succeeds, it does all the rest.
    """

    def __init__(self, settings: Mapping[str, str], libraries: Collection[str] = ()):
        """`settings`: as of HadoopShell; `libraries`: schemes that it does not know."""
        self._libraries = libraries
        self._shell = HadoopShell(settings)
        self._core: CoreFiles | None = CoreFiles()

    def fetch(self, uri: str, path: str) -> None:
        self._by_either(uri, lambda copies: copies.fetch(uri, path))

    def store(self, paths: Sequence[str], folder: str) -> None:
        self._by_either(folder, lambda copies: copies.store(paths, folder))

    def names(self, folder: str) -> list[str]:
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
        print(f"hearth: {why}. Hadoop's shell can, and is used", file=sys.stderr, flush=True)
        self._core = None
        return result
