"""Describes a training's solver and rows, for MLflow, the event file and the page."""

from __future__ import annotations

import ctypes
import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hearth.files.file_system import files_of
from hearth.sources.rank_rows import RankRows
from hearth.sources.tables.frames import frame_identity

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STATE, _SEAL = ".solverstate", ".hearth.json"


def described_solver(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A solver's fields, with floats rounded to the fewest digits that give the same float32."""
    return {
        key: _shortest(value) if isinstance(value, float) else value
        for key, value in fields.items()
    }


def _shortest(value: float) -> float:
    numbers = (float(f"{value:.{digits}g}") for digits in range(1, 10))
    return next((number for number in numbers if ctypes.c_float(number).value == value), value)


def described(name: str, uri: str, rows: RankRows | DataFrame) -> dict[str, Any]:
    """Identifies a source's rows by what is known before they are read."""
    found: dict[str, Any] = {"uri": uri} if uri else {}
    if isinstance(rows, RankRows):
        counts = [split.rows for split in rows.source.splits()]
        found["version"] = rows.source.identity()
        if None not in counts:
            found["rows"] = sum(counts)
    else:
        found["version"] = frame_identity(rows)
    return {f"dataset.{name}.{key}": value for key, value in found.items()}


def described_by_seal(name: str, snapshot: str) -> dict[str, Any]:
    """The rows that a training had read when it wrote its last snapshot, from the snapshot's seal.

    Empty if the first epoch had not ended then, or if this process cannot read the seal.
    """
    uri = f"{snapshot.removesuffix('.h5').removesuffix(_STATE)}{_SEAL}"
    ranks: list[dict[str, Any]] = []
    if not snapshot:
        return {}
    with suppress(Exception):  # the seal may be in another host's file system
        with files_of(uri).open_input(uri) as file:
            seal = json.loads(file.read())
        ranks = seal["rows"] if seal["epoch"] > 0 else []
    rows = sum(each["count"] for each in ranks)
    if not rows:
        return {}
    digest = hashlib.sha256(" ".join(each["hash"] for each in ranks).encode())
    return {f"dataset.{name}.rows": rows, f"dataset.{name}.hash": digest.hexdigest()[:16]}
