"""Writes 1,797 handwritten digits as Parquet, split into train and held-out rows.

work/png/{train,test}.parquet: id (string), label (int32), image (28x28 gray PNG)
work/raw/{train,test}.parquet: id, label, image (784 bytes, row by row)

digits.npz holds the test set of the UCI ML repository's "Optical Recognition of Handwritten Digits"
(E. Alpaydin, C. Kaynak, 1998; CC BY 4.0), which is scikit-learn's load_digits(): 8x8 values 0..16.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

WORK = Path(__file__).parent / "work"
DATA = Path(__file__).parent / "digits.npz"
SIZE = 28
SEED = 0
ROWS_PER_GROUP = 256  # a rank reads only the row groups of its rows
_BITS = 22  # fractional bits of interpolation weights


def digit_images() -> tuple[np.ndarray, np.ndarray]:
    """All digits as 28x28 gray images (uint8 [1797, 28, 28]), and their labels (int64 [1797])."""
    with np.load(DATA) as digits:
        pixels = np.round(digits["images"] * (255 / 16)).astype(np.int64)
        return enlarged(pixels), digits["labels"].astype(np.int64)


def enlarged(images: np.ndarray) -> np.ndarray:
    """Enlarges images to 28x28 linearly: first columns, then rows, each rounded to a byte."""
    size = images.shape[1]
    centres = (np.arange(SIZE)[:, None] + 0.5) * size / SIZE
    weights = np.maximum(0, 1 - np.abs(centres - np.arange(size) - 0.5))
    weights = np.round(weights / weights.sum(axis=1, keepdims=True) * (1 << _BITS)).astype(np.int64)

    def mixed(lines: np.ndarray) -> np.ndarray:  # along the last axis
        return (lines @ weights.T + (1 << _BITS - 1)) >> _BITS

    return mixed(mixed(images).swapaxes(1, 2)).swapaxes(1, 2).astype(np.uint8)


def png_bytes(image: np.ndarray) -> bytes:
    """Encodes an image as a PNG file with one gray byte per pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    height, width = image.shape
    lines = b"".join(b"\0" + line.tobytes() for line in image)  # filter type 0: none
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, data) for kind, data in chunks)


def write_tables(work: Path = WORK) -> int:
    """Writes the four files; returns the number of held-out rows, a fifth of all."""
    images, labels = digit_images()
    order = np.random.default_rng(SEED).permutation(len(images))
    held_out = len(images) // 5
    for split, rows in (("test", order[:held_out]), ("train", order[held_out:])):
        for kind, encode in (("png", png_bytes), ("raw", np.ndarray.tobytes)):
            table = pa.table(
                {
                    "id": [f"{row:08d}" for row in rows],
                    "label": pa.array(labels[rows], pa.int32()),
                    "image": pa.array([encode(images[row]) for row in rows], pa.binary()),
                }
            )
            (work / kind).mkdir(parents=True, exist_ok=True)
            pq.write_table(table, work / kind / f"{split}.parquet", row_group_size=ROWS_PER_GROUP)
    return held_out


if __name__ == "__main__":
    print(f"{write_tables()} rows held out; tables in {WORK}")
