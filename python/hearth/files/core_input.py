"""An input file of the core as a Python file object, which pyarrow can read, too."""

from __future__ import annotations

import io
from typing import Any


class CoreInput(io.RawIOBase):
    """Reads an `InputFile` of the core. Not thread-safe. Raises the core's errors."""

    def __init__(self, file: Any):
        super().__init__()
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size()}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read(self, size: int = -1) -> bytes:
        wanted = max(0, self._file.size() - self._at) if size < 0 else size
        data = self._file.read_at(self._at, wanted)
        self._at += len(data)
        return data
