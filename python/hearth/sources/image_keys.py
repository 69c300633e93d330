"""Keys of CaffeOnSpark's SequenceFiles: the label and the size of an image."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from hearth.sources.java_keys import key_values

# The columns of an image before `data`.
IMAGE_COLUMNS = ("id", "label", "channels", "height", "width", "encoded")
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
_KINDS = ((str,), (str,), (int,), (int,), (int,), (bool, int))


def picture_of(key: bytes) -> tuple[Any, ...] | None:
    """The values of IMAGE_COLUMNS; None for a key that cannot be read. A key of two is that of a
    picture file."""
    try:
        return _picture_of(key_values(key))
    except ValueError:
        return None


def values_of(key: bytes, picture: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """Those of IMAGE_COLUMNS in a row: the picture's, or an id made of the key and nulls."""
    return picture or (f"key {zlib.crc32(key):08x}", *[None] * (len(IMAGE_COLUMNS) - 1))


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


class ImageKeys:
    """picture_of() of many keys, quicker where they differ in their two texts alone.

    What lies around these is remembered with the values that it stands for.
    """

    _MOST_BEFORE, _MOST_BEHIND, _LONGEST = 16, 1000, 1024

    def __init__(self) -> None:
        # Of what comes before the texts and what comes behind them.
        self._known: dict[bytes, dict[bytes, tuple[Any, ...]]] = {}

    def picture_of(self, key: bytes) -> tuple[Any, ...] | None:
        for before, behind in self._known.items():
            if key.startswith(before) and (found := _two_texts(key, len(before))):
                first, second, rest = found
                if rest in behind:
                    return (first, second, *behind[rest])
        picture = picture_of(key)
        if picture is not None:
            self._remember(key, picture)
        return picture

    def _remember(self, key: bytes, picture: tuple[Any, ...]) -> None:
        texts = [value for value in picture[:2] if isinstance(value, str) and value.isascii()]
        if len(key) > self._LONGEST or len(texts) < 2 or not all(texts):
            return
        before, found, rest = key.partition(_written(texts))
        # Not where one refers to the other, or where the same bytes stand for something else.
        other = picture_of(before + _written(["x", "yy"]) + rest)
        if not found or other != ("x", "yy", *picture[2:]):
            return
        if before not in self._known and len(self._known) == self._MOST_BEFORE:
            return
        behind = self._known.setdefault(before, {})
        if len(behind) < self._MOST_BEHIND:
            behind[rest] = picture[2:]


def _written(texts: list[str]) -> bytes:
    """As Java writes short ones."""
    return b"".join(b"t" + struct.pack(">H", len(text)) + text.encode() for text in texts)


def _two_texts(key: bytes, at: int) -> tuple[str, str, bytes] | None:
    """Two plain texts that lie there, each behind `t` and its length, and what is behind them."""
    try:
        second = at + 3 + (key[at + 1] << 8 | key[at + 2])
        end = second + 3 + (key[second + 1] << 8 | key[second + 2])
    except IndexError:
        return None
    if not key[at] == key[second] == ord("t") or end > len(key):
        return None
    texts = key[at + 3 : second], key[second + 3 : end]
    if not texts[0].isascii() or not texts[1].isascii():
        return None
    return texts[0].decode(), texts[1].decode(), key[end:]
