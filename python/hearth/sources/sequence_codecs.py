"""Decompressors of SequenceFiles, by the names of Hadoop's codec classes."""

from __future__ import annotations

import bz2
import gzip
import struct
import zlib
from collections.abc import Callable

import pyarrow as pa

from hearth.errors import invalid

Unpack = Callable[[bytes], bytes]


def codec(name: bytes) -> Unpack | None:
    """The decompressor for the codec class `name`; None if only Hadoop has that codec.
    Decompressors raise various exceptions for damaged bytes.
    """
    return _CODECS.get(name.removeprefix(b"org.apache.hadoop.io.compress."))


def _unpack_snappy(data: bytes) -> bytes:
    """Unpacks Hadoop's blocks: an uncompressed size, then chunks of a compressed size and data."""
    snappy, found, at = pa.Codec("snappy"), [], 0
    while at < len(data):
        (left,) = struct.unpack_from(">I", data, at)
        at += 4
        while left > 0:
            (size,) = struct.unpack_from(">I", data, at)
            chunk = data[at + 4 : at + 4 + size]
            at += 4 + size
            found.append(snappy.decompress(chunk, _unpacked_size(chunk, left), asbytes=True))
            left -= len(found[-1])
    return b"".join(found)


def _unpacked_size(chunk: bytes, most: int) -> int:
    """Parses the uncompressed size at the start of a chunk."""
    size = shift = 0
    for byte in chunk[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if not 0 < size <= most:
        raise invalid(f"a chunk claims {size} bytes, but {most} are left in its block")
    return size


_CODECS: dict[bytes, Unpack] = {
    b"DefaultCodec": zlib.decompress,
    b"DeflateCodec": zlib.decompress,
    b"GzipCodec": gzip.decompress,
    b"BZip2Codec": bz2.decompress,
    b"SnappyCodec": _unpack_snappy,
}
