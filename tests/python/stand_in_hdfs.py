"""HDFS by libhdfs: a stand-in for Hadoop's library serves a folder of this host."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, MutableMapping
from pathlib import Path

import pytest

from hearth.native import _core

_LIBRARY = Path("hearth/storage/libhearth_stand_in_libhdfs.so")


class StandInHdfs:
    """`uri`: the cluster's URI. `files`: contents by path, as in WebHdfs."""

    def __init__(self, folder: Path, jars: Path, monkeypatch: pytest.MonkeyPatch):
        """Creates the folder `jars` with Hadoop's jar names, without which libhdfs is not used."""
        library = Path(_core.__file__).parents[1] / _LIBRARY
        assert library.is_file(), "`make build` makes the library that the tests load"
        jars.mkdir()
        for name in ("hadoop-common-3.jar", "commons-lang3-3.jar"):
            (jars / name).touch()
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("CLASSPATH", f"{jars}/*")
        monkeypatch.setenv("HEARTH_HDFS", "libhdfs")
        monkeypatch.setenv("HEARTH_LIBHDFS", str(library))
        monkeypatch.setenv("STAND_IN_LIBHDFS_FOLDER", str(folder))
        self.uri = f"hdfs://{uuid.uuid4().hex}"  # a connection to this host name keeps the folder
        self.files: MutableMapping[str, bytes] = _Files(folder)


class _Files(MutableMapping[str, bytes]):
    def __init__(self, folder: Path):
        self._folder = folder

    def _at(self, name: str) -> Path:
        return self._folder / name.lstrip("/")

    def __getitem__(self, name: str) -> bytes:
        return self._at(name).read_bytes()

    def __setitem__(self, name: str, content: bytes) -> None:
        self._at(name).parent.mkdir(parents=True, exist_ok=True)
        self._at(name).write_bytes(content)

    def __delitem__(self, name: str) -> None:
        self._at(name).unlink()

    def __iter__(self) -> Iterator[str]:
        found = (path for path in self._folder.rglob("*") if path.is_file())
        return (f"/{path.relative_to(self._folder)}" for path in found)

    def __len__(self) -> int:
        return sum(1 for _ in self)
