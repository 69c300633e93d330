"""Writes scikit-learn's 1,797 handwritten digits as Parquet, split into train and held-out rows.

work/png/{train,test}.parquet: id (string), label (int32), image (28x28 gray PNG)
work/raw/{train,test}.parquet: id, label, image (784 bytes, row by row)
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from sklearn.datasets import load_digits

WORK = Path(__file__).parent / "work"
SIZE = 28
SEED = 0
ROWS_PER_GROUP = 256  # ranks read only the groups that their rows lie in


def digit_images() -> tuple[list[Image.Image], np.ndarray]:
    """All digits as 28x28 gray images (0..255), and their labels (int64 [1797])."""
    digits = load_digits()
    pixels = np.round(digits.images * (255 / 16)).astype(np.uint8)
    size = (SIZE, SIZE)
    images = [Image.fromarray(digit).resize(size, Image.Resampling.BILINEAR) for digit in pixels]
    return images, digits.target


def png_bytes(image: Image.Image) -> bytes:
    """The image as a PNG file."""
    buffer = io.BytesIO()
    image.save(buffer, format="PNG")
    return buffer.getvalue()


def write_tables(work: Path = WORK) -> int:
    """Writes the four files; returns the number of held-out rows, a fifth of all."""
    images, labels = digit_images()
    order = np.random.default_rng(SEED).permutation(len(images))
    held_out = len(images) // 5
    for split, rows in (("test", order[:held_out]), ("train", order[held_out:])):
        for kind, encode in (("png", png_bytes), ("raw", Image.Image.tobytes)):
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
