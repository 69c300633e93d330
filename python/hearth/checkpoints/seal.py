"""The seal of a checkpoint: what it holds, with the size and SHA-256 of each file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

SEAL = "seal.json"
# A seal names a few files for each rank.
MOST_SEAL_BYTES = 16 << 20
_VERSION = 1


class Damaged(Exception):
    """A checkpoint is not whole; the message says why."""


@dataclass(frozen=True)
class SealedFile:
    """A file of a checkpoint, beside its seal."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Part:
    """What the program calls by one name: the step at which it was saved, and its files."""

    step: int
    files: tuple[str, ...]


@dataclass(frozen=True)
class Seal:
    """What a checkpoint holds.

    Attributes:
        number: counts the checkpoints of a folder: the newest has the highest.
        step: the program's own count.
        world: the ranks that saved it.
        parts: by the name that the program gave; files: by their names.
    """

    number: int
    step: int
    world: int
    parts: Mapping[str, Part]
    files: Mapping[str, SealedFile] = field(default_factory=dict)

    def text(self) -> str:
        """The content of its file."""
        values = {"version": _VERSION, **asdict(self)}
        return json.dumps({**values, "sha256": _sum(values)}, indent=1, sort_keys=True)

    @classmethod
    def read(cls, data: bytes) -> Seal:
        """Raises Damaged where this is not the whole content of a seal."""
        try:
            values = json.loads(data)
            stated = values.pop("sha256")
            version = values.pop("version")
        except (ValueError, RecursionError, KeyError, AttributeError, TypeError) as error:
            raise Damaged(f"{SEAL} is no whole seal ({error or type(error).__name__})") from None
        if version != _VERSION:
            raise Damaged(f"{SEAL} has the version {version!r}, and {_VERSION} is known here")
        if stated != _sum({"version": version, **values}):
            raise Damaged(f"{SEAL} was changed: its own checksum differs")
        try:
            return cls._of(**values)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Damaged(f"{SEAL} has wrong fields ({error})") from None

    @classmethod
    def _of(cls, number: Any, step: Any, world: Any, parts: Any, files: Any) -> Seal:
        if not all(isinstance(value, int) for value in (number, step, world)):
            raise ValueError("number, step and world are integers")
        known = {name: SealedFile(**values) for name, values in files.items()}
        for name, file in known.items():
            if name != os.path.basename(name) or name in ("", ".", "..", SEAL):
                raise ValueError(f"{name!r} is no file beside it")
            if not isinstance(file.bytes, int) or not isinstance(file.sha256, str):
                raise ValueError(f"{name!r} has no size and checksum")
        made = {name: Part(int(p["step"]), tuple(p["files"])) for name, p in parts.items()}
        if missing := {name for part in made.values() for name in part.files} - known.keys():
            raise ValueError(f"no size and checksum of {', '.join(sorted(map(str, missing)))}")
        return cls(number, step, world, made, known)


def _sum(values: Mapping[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
