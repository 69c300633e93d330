"""Writes archives for Spark's --archives."""

from __future__ import annotations

import io
import os
import struct
import tarfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hearth.errors import HearthError

# Formats that all versions of Spark and YARN unpack. A plain .tar is fast to write but large.
SUFFIXES = (".tar.gz", ".tgz", ".tar")
# Higher levels save 1 % of size for four times the processor time.
_LEVEL = 6


@dataclass(frozen=True)
class Entry:
    """A file or link of an archive: its name in the archive, and its local path or its content."""

    name: str
    path: Path | None = None
    text: str = ""
    library: bool = False

    @classmethod
    def script(cls, name: str, text: str) -> Entry:
        """An executable script with this text."""
        return cls(name, None, text)


@dataclass(frozen=True)
class Written:
    """Sizes of an archive, packed and unpacked, in bytes."""

    packed: int
    unpacked: int


def files_below(folder: Path, name: str, caches: bool = False) -> Iterator[Entry]:
    """All files of a folder, under another name; with `caches` including Python's caches."""
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(part for part in folders if caches or part != "__pycache__")
        here = Path(parent)
        links = [part for part in folders if (here / part).is_symlink()]
        folder_name = f"{name}/{here.relative_to(folder)}".removesuffix("/.")
        for file in sorted([*files, *links]):
            yield Entry(f"{folder_name}/{file}", here / file)


def write_archive(target: Path, entries: Iterable[Entry]) -> Written:
    """Writes the archive under a temporary name first, so that a partial archive never has the
    final name.

    Raises:
        HearthError: the name has none of SUFFIXES, or the file cannot be written.
    """
    if not target.name.endswith(SUFFIXES):
        raise HearthError(
            f"-o {target}: Spark recognizes archives by their extensions: {', '.join(SUFFIXES)}"
        )
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    compressed = {} if target.name.endswith(".tar") else {"compresslevel": _LEVEL}
    mode = "w" if target.name.endswith(".tar") else "w:gz"
    unpacked = 0
    try:
        with tarfile.open(part, mode, **compressed) as archive:
            for entry in entries:
                unpacked += _add(archive, entry)
        part.replace(target)
        return Written(target.stat().st_size, unpacked)
    except OSError as error:
        raise HearthError(f"-o {target} cannot be written: {error}") from error
    finally:
        part.unlink(missing_ok=True)


def _add(archive: tarfile.TarFile, entry: Entry) -> int:
    """Adds an entry, and returns its size. Drops the owner, and lets everyone read the unpacked
    file."""
    if entry.path is None:
        content = entry.text.encode()
        info = tarfile.TarInfo(entry.name)
        info.mode, info.size, info.mtime = 0o755, len(content), int(time.time())
        archive.addfile(info, io.BytesIO(content))
        return info.size
    inside = _is_link_inside(entry.path)
    info = archive.gettarinfo(str(entry.path if inside else entry.path.resolve()), entry.name)
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mode |= 0o444
    if info.islnk():  # a hard link to an earlier file: write the content again
        info.type, info.size = tarfile.REGTYPE, entry.path.stat().st_size
    if not info.isreg():
        archive.addfile(info)
        return 0
    if entry.library:
        content = loaded_part(entry.path.read_bytes())
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
        return info.size
    with open(entry.path, "rb") as file:
        archive.addfile(info, file)
    return info.size


def loaded_part(image: bytes) -> bytes:
    """Cuts a 64-bit little-endian ELF file after its last loaded byte. This omits the section table
    and debug symbols, a fifth of oneDNN's library. Other files are returned unchanged."""
    if image[:6] != b"\x7fELF\x02\x01":
        return image
    (first,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    end = first + size * count
    for at in range(first, end, size):
        _, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", image, at)
        end = max(end, offset + length)
    header = bytearray(image[:end])
    struct.pack_into("<Q", header, 40, 0)  # offset of the section table
    struct.pack_into("<HH", header, 60, 0, 0)  # its number of entries, and the index of their names
    return bytes(header)


def _is_link_inside(path: Path) -> bool:
    """Whether a link's target is in or below its folder, and so in the archive, too."""
    if not path.is_symlink():
        return False
    target = os.readlink(path)
    return not os.path.isabs(target) and not target.startswith("..")
