"""The seal of a checkpoint: its contents, with the size and SHA-256 of each file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from hearth.errors import invalid

SEAL = "seal.json"
# A seal lists a few files for each rank, so a larger one is damaged.
MOST_SEAL_BYTES = 16 << 20
_VERSION = 1


class Damaged(Exception):
    """A checkpoint is incomplete or damaged; the message says why."""


@dataclass(frozen=True)
class SealedFile:
    """A checkpoint file's size and checksum, as listed in the seal."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Part:
    """An object that the program saves under a name: the step of its last save, and its files."""

    step: int
    files: tuple[str, ...]


@dataclass(frozen=True)
class Seal:
    """The contents of a checkpoint.

    Attributes:
        number: counts the checkpoints of a folder, so the newest has the highest number.
        step: the program's step number.
        world: the number of ranks that saved it.
        parts: the saved objects, by the names under which the program saved them. files: the files'
            sizes and checksums, by file name.
    """

    number: int
    step: int
    world: int
    parts: Mapping[str, Part]
    files: Mapping[str, SealedFile] = field(default_factory=dict)

    def text(self) -> str:
        """Serializes the seal."""
        values = {"version": _VERSION, **asdict(self)}
        return json.dumps({**values, "sha256": _sum(values)}, indent=1, sort_keys=True)

    @classmethod
    def read(cls, data: bytes) -> Seal:
        """Parses a seal; raises Damaged if it is incomplete or invalid."""
        try:
            values = json.loads(data)
            stated = values.pop("sha256")
            version = values.pop("version")
        except (ValueError, RecursionError, KeyError, AttributeError, TypeError) as error:
            why = error or type(error).__name__
            raise Damaged(f"{SEAL} is not a complete seal ({why})") from error
        if version != _VERSION:
            raise Damaged(f"{SEAL} has version {version!r}, but this release reads {_VERSION}")
        if stated != _sum({"version": version, **values}):
            raise Damaged(f"{SEAL} was modified: its checksum differs")
        try:
            return cls._of(**values)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Damaged(f"{SEAL} has wrong fields ({error})") from error

    @classmethod
    def _of(cls, number: Any, step: Any, world: Any, parts: Any, files: Any) -> Seal:
        if not all(isinstance(value, int) for value in (number, step, world)):
            raise invalid("number, step and world must be integers")
        known = {name: SealedFile(**values) for name, values in files.items()}
        for name, file in known.items():
            if name != os.path.basename(name) or name in ("", ".", "..", SEAL):
                raise invalid(f"{name!r} is not the name of a file in its folder")
            if not isinstance(file.bytes, int) or not isinstance(file.sha256, str):
                raise invalid(f"{name!r} has no size and checksum")
        made = {name: Part(int(p["step"]), tuple(p["files"])) for name, p in parts.items()}
        if missing := {name for part in made.values() for name in part.files} - known.keys():
            raise invalid(f"{', '.join(sorted(map(str, missing)))} has no size and checksum")
        return cls(number, step, world, made, known)


def _sum(values: Mapping[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
