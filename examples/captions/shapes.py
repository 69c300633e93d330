"""Draws coloured shapes: images with captions in COCO's format, and others with a class each.

coco/{train,test}/*.png, coco/{train,test}.json: one image of each class, with one caption; the
images for testing have other positions and sizes.
shapes/{train,test}.parquet: id (string), label (int32: the class), image (PNG), for the CNN.
"""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image, ImageDraw

SIZE = 32
# Drawn larger and scaled down, for soft edges.
_SCALE = 4
_COLOURS = {
    "red": (214, 48, 49),
    "green": (46, 160, 67),
    "blue": (33, 98, 219),
    "yellow": (240, 200, 20),
}
_SHAPES = ("circle", "square", "triangle")
_SIDES = ("left", "right")
CLASSES = tuple(itertools.product(_COLOURS, _SHAPES, _SIDES))
# Images per class for the CNN; the captioned images are not among them.
_CNN_IMAGES = {"train": 40, "test": 4}


def caption_of(label: int) -> str:
    """The caption of an image of this class."""
    colour, shape, side = CLASSES[label]
    return f"A {colour} {shape} on the {side}."


def draw(label: int, random: np.random.Generator) -> Image.Image:
    """An image of the class: position, size, shade and background vary."""
    colour, shape, side = CLASSES[label]
    whole = SIZE * _SCALE
    radius = random.uniform(0.16, 0.22) * whole
    x = (0.27 if side == "left" else 0.73) * whole + random.uniform(-0.04, 0.04) * whole
    y = random.uniform(0.3, 0.7) * whole
    shade = random.uniform(0.85, 1.0)
    paint = tuple(int(shade * part) for part in _COLOURS[colour])
    ground = (int(random.uniform(215, 255)),) * 3
    image = Image.new("RGB", (whole, whole), ground)
    pen = ImageDraw.Draw(image)
    box = (x - radius, y - radius, x + radius, y + radius)
    if shape == "circle":
        pen.ellipse(box, fill=paint)
    elif shape == "square":
        pen.rectangle(box, fill=paint)
    else:
        corners = [(x, y - radius), (x + radius, y + radius), (x - radius, y + radius)]
        pen.polygon(corners, fill=paint)
    return image.resize((SIZE, SIZE), Image.Resampling.BOX)


def write_coco(folder: Path, split: str, seed: int) -> None:
    """Writes an image of each class with its caption: `folder`/`split`.json and its images."""
    random = np.random.default_rng(seed)
    (folder / split).mkdir(parents=True, exist_ok=True)
    images, notes = [], []
    for label in range(len(CLASSES)):
        number = 100 * seed + label
        name = f"{number:06d}.png"
        draw(label, random).save(folder / split / name)
        images.append({"id": number, "file_name": name, "height": SIZE, "width": SIZE})
        notes.append({"id": number, "image_id": number, "caption": caption_of(label)})
    document = {"images": images, "annotations": notes}
    (folder / f"{split}.json").write_text(json.dumps(document, indent=1))


def write_shapes(folder: Path, split: str, seed: int) -> int:
    """Writes the table for the CNN, in an order that mixes the classes; returns its rows."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.tile(np.arange(len(CLASSES)), _CNN_IMAGES[split]))
    table = pa.table(
        {
            "id": [f"{split}{row:05d}" for row in range(len(labels))],
            "label": pa.array(labels, pa.int32()),
            "image": pa.array(_files(labels, random), pa.binary()),
        }
    )
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / f"{split}.parquet", row_group_size=64)
    return len(labels)


def _files(labels: np.ndarray, random: np.random.Generator) -> Iterator[bytes]:
    for label in labels:
        file = io.BytesIO()
        draw(int(label), random).save(file, "PNG")
        yield file.getvalue()


def write_all(work: Path) -> None:
    """Writes every file that the example reads."""
    for seed, split in enumerate(("train", "test"), 1):
        write_coco(work / "coco", split, seed)
        write_shapes(work / "shapes", split, seed + 10)
