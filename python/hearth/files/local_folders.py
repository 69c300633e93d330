"""Local folders for an executor's large temporary files: Spark's local folders, one per disk."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

# A disk with less free space counts as full, because a spool would fill it within seconds.
_ENOUGH_BYTES = 256 << 20


def spill_folder(turn: int = 0) -> str:
    """The folder for file number `turn`; folders are used round-robin.

    Skips folders that cannot be written or whose disk is nearly full. If all are full, returns the
    one with the most free space; without Spark's folders, the system's temporary folder.
    """
    space = {folder: free_bytes(folder) for folder in _folders()}
    usable = [folder for folder, free in space.items() if free >= _ENOUGH_BYTES]
    if usable:
        return usable[turn % len(usable)]
    return max(space, key=lambda folder: space[folder], default=tempfile.gettempdir())


def free_bytes(folder: str) -> int:
    """Bytes that this process can still write to the folder's disk; -1 if it cannot write there."""
    with suppress(OSError):
        with tempfile.TemporaryFile(dir=folder):
            pass
        disk = os.statvfs(folder)
        return disk.f_bavail * disk.f_frsize
    return -1


def _folders() -> list[str]:
    from hearth.native._core import local_folders

    return [folder for folder in map(os.fsdecode, local_folders()) if os.path.isdir(folder)]
