"""What the keys of CaffeOnSpark's SequenceFiles say of their pictures."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from hearth.rows.java_keys import key_values

# The columns of a picture before `data`, and the types of their values in a key.
PICTURE_COLUMNS = ("id", "label", "channels", "height", "width", "encoded")
_KINDS = ((str,), (str,), (int,), (int,), (int,), (bool, int))


def picture_of(
    key: bytes, values_of: Callable[[bytes], list[Any]] = key_values
) -> tuple[Any, ...] | None:
    """The values of PICTURE_COLUMNS; None for a key that cannot be read. A key of two is that of a
    picture file. `values_of`: as key_values()."""
    try:
        return _picture_of(values_of(key))
    except ValueError:
        return None


def name_of(key: bytes) -> str:
    """The id of a row whose key cannot be read."""
    return f"key {zlib.crc32(key):08x}"


def _picture_of(values: list[Any]) -> tuple[Any, ...]:
    if len(values) == 2:
        values = [*values, None, None, None, True]
    for value, kinds in zip(values, _KINDS, strict=True):
        if value is not None and not isinstance(value, kinds):
            raise ValueError(f"{value!r:.40} is not what a key has in its place")
        if isinstance(value, int) and value.bit_length() > 31:  # Spark would drop the upper bits
            raise ValueError(f"{value} is no size of a picture")
        if isinstance(value, str):
            value.encode()  # half of a character is no text
    *others, encoded = values
    # Spark would take a number in the place of a boolean for null.
    return (*others, encoded if encoded is None else bool(encoded))
