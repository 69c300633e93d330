"""Keys of images in SequenceFiles, serialized like CaffeOnSpark's tools."""

from __future__ import annotations

import struct
from typing import Any

from hearth.caffeonspark.flags import FlagError
from hearth.caffeonspark.tools.program import check_new
from hearth.errors import invalid

# Java's object serialization describes a class once and later refers to it by number. The serial
# versions and fields are Scala 2.13's and Java 17's.
_HEADER = b"\xac\xed\x00\x05"
_OBJECT_FIELD = b"t\x00\x12Ljava/lang/Object;"
_SAME_TYPE = b"q\x00~\x00\x01"
_TUPLE_2 = b"sr\x00\x0cscala.Tuple2\x01\xfb\xdd\xcd\x22\xe7\x34\x7a\x02\x00\x02"
_TUPLE_6 = b"sr\x00\x0cscala.Tuple6\x89\xe6\xcd\x0b\x84\xe7\xf0\x30\x02\x00\x06"
_INTEGER = (
    b"sr\x00\x11java.lang.Integer\x12\xe2\xa0\xa4\xf7\x81\x87\x38\x02\x00\x01I\x00\x05value"
    b"xr\x00\x10java.lang.Number\x86\xac\x95\x1d\x0b\x94\xe0\x8b\x02\x00\x00xp"
)
# Starts another Integer, whose class description has number 5. (Numbers count from 0 and also
# include strings: the field type's name is 1, the id is 3 and the label is 4.)
_INTEGER_AGAIN = b"sq\x00~\x00\x05"
_BOOLEAN = (
    b"sr\x00\x11java.lang.Boolean\xcd\x20\x72\x80\xd5\x9c\xfa\xee\x02\x00\x01Z\x00\x05valuexp"
)
_MOST_TEXT = 0xFFFF


def pair_key(identifier: str, label: str) -> bytes:
    """Serializes an encoded image's key, scala.Tuple2(identifier, label), like ObjectOutputStream.

    Raises:
        ValueError: a string is longer than 65,535 bytes.
    """
    return _HEADER + _TUPLE_2 + _fields(2) + _text(identifier) + _text(label)


def datum_key(
    identifier: str, label: str, channels: int, height: int, width: int, encoded: bool
) -> bytes:
    """Serializes a scala.Tuple6 of the arguments, like pair_key()."""
    sizes = (struct.pack(">i", number) for number in (channels, height, width))
    head = _HEADER + _TUPLE_6 + _fields(6) + _text(identifier) + _text(label)
    return head + _INTEGER + _INTEGER_AGAIN.join(sizes) + _BOOLEAN + (b"\1" if encoded else b"\0")


def check_classic(spark: Any, output: str) -> None:
    """Raises FlagError with Spark Connect, or if the output already exists."""
    if not hasattr(spark, "_jsc"):
        raise FlagError("SequenceFiles need classic Spark, as Spark Connect has no RDDs")
    check_new(spark, output)


def _fields(count: int) -> bytes:
    names = [b"L\x00\x02_%d" % (number + 1) for number in range(count)]
    return names[0] + _OBJECT_FIELD + b"".join(name + _SAME_TYPE for name in names[1:]) + b"xp"


def _text(value: str) -> bytes:
    """Encodes in Java's modified UTF-8: each surrogate as a character, NUL as two bytes."""
    pairs = value.encode("utf-16-be", "surrogatepass")
    units = struct.unpack(f">{len(pairs) // 2}H", pairs)
    data = "".join(map(chr, units)).encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    if len(data) > _MOST_TEXT:
        raise invalid(f"{value!r:.60} is too long for a key: {len(data)} bytes")
    return b"t" + struct.pack(">H", len(data)) + data
