"""Images by the keys of CaffeOnSpark's SequenceFiles: the label and the size of each."""

from __future__ import annotations

import zlib
from typing import Any

# The columns of CaffeOnSpark's images, and their types in Arrow.
IMAGE_TYPES = {
    "id": "string",
    "label": "string",
    "channels": "int32",
    "height": "int32",
    "width": "int32",
    "encoded": "bool",
    "data": "binary",
}
# Those that a key has.
IMAGE_COLUMNS = tuple(IMAGE_TYPES)[:-1]


def values_of(key: bytes, image: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """Those of IMAGE_COLUMNS in a row: the image's, or an id made of the key and nulls."""
    return image or (f"key {zlib.crc32(key):08x}", *[None] * (len(IMAGE_COLUMNS) - 1))
