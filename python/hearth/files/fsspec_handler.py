"""pyarrow's handler of fsspec's file systems, which reports errors of a busy store instead of "file
not found".
"""

from __future__ import annotations

import errno
import os
from typing import Any

from pyarrow import PythonFile
from pyarrow.fs import FSSpecHandler


class FsspecHandler(FSSpecHandler):
    """pyarrow's own asks isfile(), which gives False for any error that Azure's store has."""

    def open_input_stream(self, path: str) -> PythonFile:
        return self._open(path)

    def open_input_file(self, path: str) -> PythonFile:
        return self._open(path)

    def _open(self, path: str) -> Any:
        if self.fs.info(path)["type"] != "file":
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return PythonFile(self.fs.open(path, mode="rb"), mode="r")
