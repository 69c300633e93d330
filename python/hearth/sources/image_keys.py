"""Image metadata (label and size) in the keys of CaffeOnSpark's SequenceFiles."""

from __future__ import annotations

import zlib
from typing import Any

# The columns of CaffeOnSpark's images, and their Arrow types.
IMAGE_TYPES = {
    "id": "string",
    "label": "string",
    "channels": "int32",
    "height": "int32",
    "width": "int32",
    "encoded": "bool",
    "data": "binary",
}
# The columns whose values a key contains.
IMAGE_COLUMNS = tuple(IMAGE_TYPES)[:-1]


def values_of(key: bytes, image: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """A row's values of IMAGE_COLUMNS; without `image`, an id derived from the key, and nulls."""
    return image or (f"key {zlib.crc32(key):08x}", *[None] * (len(IMAGE_COLUMNS) - 1))
