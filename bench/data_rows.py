"""Writes the rows of data.py's contenders as Parquet files, and checks the batches they deliver.

Runs in the peers' environments, too.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

FILES = 4
DISTINCT_IMAGES = 32
IMAGE_BYTES = 150_000
TOKENS = 1_000  # distinct images


@dataclass(frozen=True)
class Shape:
    """Rows of one kind: the columns x and id (0, 1, 2, ...)."""

    rows: int
    batch_size: int
    window: int  # rows per rank that a windowed shuffle mixes
    width: int  # values per row, or bytes of an image
    kind: str  # "float": float32, "image": bytes, "token": int64
    group: int  # rows per row group

    @property
    def step(self) -> int:
        """look() reads every n-th value: one per cache line."""
        return 64 // self.value_bytes

    @property
    def value_bytes(self) -> int:
        return {"image": 1, "float": 4, "token": 8}[self.kind]

    def fewer(self, divisor: int) -> Shape:
        """The same with fewer rows and a smaller window."""
        window = max(self.batch_size, self.window // divisor)
        return replace(self, rows=max(64, self.rows // divisor), window=window)


SHAPES = {
    "784 floats": Shape(60_000, 100, 16_384, 784, "float", 4_096),
    "10 floats": Shape(400_000, 256, 16_384, 10, "float", 32_768),
    "150 KB images": Shape(1_500, 32, 1_024, IMAGE_BYTES, "image", 64),
}


def write(shape: Shape, folder: Path) -> None:
    """Writes FILES Parquet files of the rows.

    expected.json gets the number of rows, and the result of look() for all of them.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(1)
    images = _images(random) if shape.kind == "image" else []
    rows, total = shape.rows, 0.0
    folder.mkdir()
    for number in range(FILES):
        ids = np.arange(number * rows // FILES, (number + 1) * rows // FILES)
        if shape.kind == "image":
            x = pa.array([_numbered(images[i % len(images)], i) for i in ids], pa.binary())
            total += look([value.as_py() for value in x], shape.step)
        else:
            # Sums of these in float64 are exact in any order.
            values = random.integers(0, 1 << 20, (len(ids), shape.width))
            if shape.kind == "float":
                values = values.astype(np.float32) / 1024
            else:
                values %= TOKENS
            offsets = np.arange(0, values.size + 1, shape.width, dtype=np.int32)
            x = pa.ListArray.from_arrays(offsets, pa.array(values.ravel()))
            total += float(values[:, :: shape.step].sum(dtype=np.float64))
        table = pa.table({"x": x, "id": ids})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=shape.group)
    folder.joinpath("_expected.json").write_text(json.dumps({"rows": rows, "sum": total}))


def look(x: Any, step: int) -> float:
    """The sum of every step-th value of each row of a tensor [n, k] or of a list of bytes."""
    import numpy as np

    if isinstance(x, list):
        return float(sum(int(np.frombuffer(row, np.uint8)[::step].sum()) for row in x))
    import torch

    kind = torch.float64 if x.is_floating_point() else torch.int64
    return float(x[:, ::step].sum(dtype=kind))


def _images(random: Any) -> list[bytes]:
    """JPEGs of gradients and noise, each slightly shorter than IMAGE_BYTES."""
    import numpy as np
    from PIL import Image

    found = []
    for number in range(DISTINCT_IMAGES):
        down, across = np.mgrid[0:480, 0:640]
        planes = [(across + 3 * number) % 256, (down * 2 + number) % 256, (down + across) % 256]
        noise = random.normal(0, 12, (480, 640, 3))
        pixels = np.clip(np.stack(planes, -1) + noise, 0, 255).astype(np.uint8)
        for quality in range(95, 40, -1):
            encoded = io.BytesIO()
            Image.fromarray(pixels).save(encoded, "JPEG", quality=quality)
            if encoded.tell() <= IMAGE_BYTES - 8:
                break
        found.append(encoded.getvalue())
    return found


def _numbered(image: bytes, number: int) -> bytes:
    """The image, padded to IMAGE_BYTES after its end marker, which decoders ignore.

    The padding contains the row's number, so that no two rows are equal.
    """
    return image.ljust(IMAGE_BYTES - 8, b"\0") + int(number).to_bytes(8, "little")
