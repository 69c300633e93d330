"""Infers the format of a folder's files from their names."""

from __future__ import annotations

from typing import Any

from hearth.errors import invalid
from hearth.files.stored_files import list_files
from hearth.sources.arrow import ArrowFormat
from hearth.sources.file_source import FileSource
from hearth.sources.format import Format
from hearth.sources.parquet import ParquetFormat
from hearth.sources.tfrecord import TfRecordFormat

_PARQUET = ".parquet"
_ARROW = (".arrow", ".feather", ".ipc")


def pin_by_names(uri: str, spark: Any = None) -> FileSource:
    """Pins a file or a folder's files: Parquet or Arrow by their extension, otherwise TFRecords.

    Raises:
        ValueError: the files have several formats; or like Source.pin().
        FileNotFoundError, OSError, HearthError: like Source.pin().
    """
    files = list_files(uri, spark)
    kinds = {_kind(file.uri) for file in files}
    if len(kinds) > 1:
        raise invalid(f"{uri} has files of several formats: use files of one format")
    formats: dict[str, Format] = {
        "parquet": ParquetFormat(), "arrow": ArrowFormat(), "tfrecord": TfRecordFormat(),
    }  # fmt: skip
    return FileSource(formats[kinds.pop()], uri).pin_files(files)


def _kind(uri: str) -> str:
    if uri.endswith(_PARQUET):
        return "parquet"
    return "arrow" if uri.endswith(_ARROW) else "tfrecord"
