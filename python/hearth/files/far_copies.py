"""Copies between this host and other file systems: HDFS by the core, in milliseconds; schemes that
Spark's Hadoop does not know by a library; all others, and a cluster that the core cannot use
(WebHDFS is off, say), by Hadoop's shell, a JVM each time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from hearth.files.hadoop_shell import HadoopShell, use_core_as_hadoop_user
from hearth.files.library_files import LibraryFiles
from hearth.files.uri import CORE_SCHEMES, scheme
from hearth.native.failure import hearth_error

Result = TypeVar("Result")

_BLOCK_BYTES = 8 << 20


class FarCopies:
    """One task's; one thread at a time. Its methods are HadoopShell's, and raise the same errors.

    Where the core fails the shell tries, too, and its reason is the one that counts. If it
    succeeds, it does all the rest.
    """

    def __init__(self, settings: Mapping[str, str], libraries: Collection[str] = ()):
        """`settings`: as of HadoopShell; `libraries`: schemes that it does not know."""
        self._libraries = libraries
        self._shell = HadoopShell(settings)
        self._core: CoreCopies | None = CoreCopies()

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
        except (OSError, ValueError, hearth_error()) as error:
            why = error
        result = act(self._shell)
        print(f"hearth: {why}. Hadoop's shell can, and is used", file=sys.stderr, flush=True)
        self._core = None
        return result


class CoreCopies:
    """By the core's storage. Raises what that does: OSError, ValueError or HearthError."""

    def __init__(self) -> None:
        use_core_as_hadoop_user()

    def fetch(self, uri: str, path: str) -> None:
        from hearth.native._core import InputFile

        source, at = InputFile(uri), 0
        with open(path, "wb") as target:
            while block := source.read_at(at, _BLOCK_BYTES):
                target.write(block)
                at += len(block)

    def store(self, paths: Sequence[str], folder: str) -> None:
        from hearth.native._core import OutputFile

        for path in paths:
            target = OutputFile(f"{folder}/{Path(path).name}")  # HDFS makes the folders above it
            try:
                with open(path, "rb") as source:
                    while block := source.read(_BLOCK_BYTES):
                        target.append(block)
                target.commit()
            finally:
                target.discard()

    def names(self, folder: str) -> list[str]:
        from hearth.native._core import list_folder

        try:
            return [status.uri.rpartition("/")[2] for status in list_folder(folder)]
        except FileNotFoundError:
            return []
