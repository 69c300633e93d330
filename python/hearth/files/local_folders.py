"""Where an executor may put large temporary files: Spark has folders for it on each disk."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

# A disk with less room is as good as full: a spool would end on it within seconds.
_ENOUGH_BYTES = 256 << 20


def spill_folder(turn: int = 0) -> str:
    """The folder for the file of number `turn`: all folders are used in turn.

    Those that cannot be written, or whose disk is nearly full, are skipped; if all disks are full,
    the one with the most room is taken. Without folders of Spark it is the system's.
    """
    room = {folder: free_bytes(folder) for folder in _folders()}
    usable = [folder for folder, free in room.items() if free >= _ENOUGH_BYTES]
    if usable:
        return usable[turn % len(usable)]
    return max(room, key=lambda folder: room[folder], default=tempfile.gettempdir())


def free_bytes(folder: str) -> int:
    """The room on a folder's disk for this process; -1 where no file can be made in it."""
    with suppress(OSError):
        with tempfile.TemporaryFile(dir=folder):
            pass
        disk = os.statvfs(folder)
        return disk.f_bavail * disk.f_frsize
    return -1


def _folders() -> list[str]:
    from hearth.native._core import local_folders

    return [folder for folder in map(os.fsdecode, local_folders()) if os.path.isdir(folder)]
