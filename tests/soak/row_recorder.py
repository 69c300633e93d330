"""A layer that records which rows each iteration of a training received."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path
from typing import Any

from hearth import caffe


class RowRecorder(caffe.Layer):
    """Appends a line "iteration id id ..." for every forward to a file of this process.

    Bottoms: the ids of the rows, and the net's count of finished iterations, which a snapshot
    restores. `param_str`: the folder, and the seconds that a forward takes. Each line is a single
    write, so a killed process loses none.
    """

    def setup(self, bottom: Any, top: Any) -> None:
        folder, pace = self.param_str.rsplit(" ", 1)
        self._pace_s = float(pace)
        generation = int(Path(folder, "generation").read_text(encoding="utf-8"))
        path = Path(folder, f"{generation:04d}-{uuid.uuid4().hex}")
        self._file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND)

    def reshape(self, bottom: Any, top: Any) -> None:
        """Nothing to do: the layer has no tops."""

    def forward(self, bottom: Any, top: Any) -> None:
        iteration = round(float(bottom[1].data[0]))
        ids = (int(value) for value in bottom[0].data)
        os.write(self._file, (" ".join(map(str, [iteration, *ids])) + "\n").encode())
        time.sleep(self._pace_s)

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        """Nothing to do: the layer learns nothing."""
