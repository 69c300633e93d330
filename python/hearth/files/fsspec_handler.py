"""A pyarrow handler of fsspec's file systems that reports a busy store's errors as such. (pyarrow's
handler reports "file not found".)
"""

from __future__ import annotations

import errno
import os
from typing import Any

from pyarrow import PythonFile
from pyarrow.fs import FSSpecHandler


class FsspecHandler(FSSpecHandler):
    """Opens files without isfile(), which pyarrow's handler calls: for Azure's store, isfile()
    returns False on any error."""

    def open_input_stream(self, path: str) -> PythonFile:
        return self._open(path)

    def open_input_file(self, path: str) -> PythonFile:
        return self._open(path)

    def _open(self, path: str) -> Any:
        if self.fs.info(path)["type"] != "file":
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return PythonFile(self.fs.open(path, mode="rb"), mode="r")
