"""Notes that nodes write for the test that started them: one JSON file each."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from pyspark import cloudpickle


class Notes:
    """A folder in which each node writes one JSON file; passed to nodes as an argument."""

    def __init__(self, folder: str):
        self.folder = folder

    def write(self, ctx, value) -> None:
        name = f"{ctx.role}{ctx.index}"
        path = os.path.join(self.folder, f".{name}")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.rename(path, os.path.join(self.folder, name))

    def wait_for(self, name: str) -> None:
        until = time.monotonic() + 60
        while name not in self.read() and time.monotonic() < until:
            time.sleep(0.05)

    def read(self) -> dict:
        files = [file for file in Path(self.folder).iterdir() if not file.name.startswith(".")]
        return {file.name: json.loads(file.read_text()) for file in sorted(files)}


# Executors cannot import this module.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
