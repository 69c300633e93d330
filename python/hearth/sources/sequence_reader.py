"""Hadoop's SequenceFile, version 6: records of two byte strings, between marks at which it may be
read from the middle. (Layout: the documentation of org.apache.hadoop.io.SequenceFile.)"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from hearth.sources.sequence_codecs import Unpack, codec

_MAGIC, _VERSION = b"SEQ", 6
_BYTES = "org.apache.hadoop.io.BytesWritable"
_HEADER_BYTES = 1 << 12
_WINDOW, _LEAST_WINDOW = 1 << 18, 1 << 12
_ESCAPE = b"\xff\xff\xff\xff"  # stands in the place of a record's length before a mark
_MARK_BYTES = 16

Record = tuple[bytes, bytes]


class Unreadable(ValueError):
    """A file that is sound, perhaps, but of a kind that is read by Hadoop only."""


class SequenceReader:
    """Records of one file. One thread.

    A stretch of records, from one mark to the next, belongs to the range in which its mark begins;
    that behind the header to the range with the first byte. So each record is in one range.
    """

    def __init__(self, uri: str, file: Any, size: int, wanted: int = 0):
        """`file`: with read_at(). `wanted`: the end of the last range that will be read.

        Raises:
            Unreadable: another version, codec or class of keys or values.
            ValueError: no SequenceFile, or a damaged one.
        """
        self._uri, self._file, self._size, self._wanted = uri, file, size, wanted
        self._ended = 0  # the end of the range before, whose next mark comes next in `_bytes`
        self._bytes = _Bytes(self, 0, min(size, _HEADER_BYTES))
        self._unpack: Unpack | None = None
        self._in_blocks = False
        self._read_header()

    def records(self, begin: int, end: int) -> Iterator[Record]:
        """(key, value) of the records that belong to [begin, end)."""
        for at in self._stretches(begin, end):
            if self._in_blocks:
                yield from self._block()
            else:
                yield self._record(at)

    def count(self, begin: int, end: int) -> int:
        """How many there are, without unpacking them."""
        found = 0
        for at in self._stretches(begin, end):
            if self._in_blocks:
                found += self._bytes.vint()
                for _ in range(4):
                    self._bytes.skip(self._length(self._bytes.vint(), at))
            else:
                found += 1
                self._bytes.skip(4 + self._bytes.number())  # the key's length stands between
        return found

    def damaged(self, what: str, at: int) -> ValueError:
        return ValueError(f"{self._uri} is damaged: {what} at byte {at}; write it again")

    def _read_header(self) -> None:
        head = self._bytes
        if head.left < 4 or head.take(3) != _MAGIC:
            raise Unreadable(f"{self._uri} is not a SequenceFile")
        if (version := head.take(1)[0]) != _VERSION:
            raise Unreadable(f"{self._uri} is a SequenceFile of version {version}")
        kinds = [head.text(), head.text()]
        for kind in kinds:
            if kind != _BYTES:
                raise Unreadable(
                    f"{self._uri} has keys or values of class {kind}; a SequenceFile of pictures "
                    "has BytesWritable for both, as Binary2Sequence and LMDB2Sequence write them"
                )
        packed, self._in_blocks = head.take(1) != b"\0", head.take(1) != b"\0"
        if packed:
            name = head.text()
            self._unpack = codec(name)
            if self._unpack is None:
                raise Unreadable(f"{self._uri} is compressed by {name}")
        for _ in range(2 * head.number()):  # what its writer wanted to say
            head.text()
        self._mark = _ESCAPE + head.take(_MARK_BYTES)
        self._first = head.at

    def _stretches(self, begin: int, end: int) -> Iterator[int]:
        """Where each record or block begins; whoever asks reads it before the next one."""
        end = max(end, self._first + 1)  # a mark right behind the header is of the first range
        begin = max(begin, self._first + 1) if begin > 0 else 0
        if begin == 0 or begin != self._ended:
            at, data = self._next_mark(begin, end) if begin > 0 else (self._first, b"")
            self._bytes = _Bytes(self, at, self._size, data, wanted=max(end, self._wanted))
        self._ended = 0
        while self._bytes.left > 0:
            at = self._bytes.at
            if self._bytes.left >= len(_ESCAPE) and self._bytes.peek(len(_ESCAPE)) == _ESCAPE:
                if at >= end:
                    break
                if self._bytes.take(len(self._mark)) != self._mark:
                    raise self.damaged("a mark is not the file's", at)
                if not self._in_blocks or self._bytes.left == 0:
                    continue
            elif self._in_blocks:
                raise self.damaged("a block does not begin with a mark", at)
            yield at
        self._ended = end

    def _next_mark(self, begin: int, end: int) -> tuple[int, bytes]:
        """Where the first mark begins that does so in [begin, end), and some bytes from there on;
        the file's end where none does."""
        at, tail = begin, b""
        last = min(end - 1 + len(self._mark), self._size)
        while at < last:
            window = self._file.read_at(at, min(_WINDOW, last - at))
            if not window:
                raise self.damaged("it ends", at)
            place = (tail + window).find(self._mark)
            if place >= 0:
                return at - len(tail) + place, (tail + window)[place:]
            tail = (tail + window)[1 - len(self._mark) :]
            at += len(window)
        return self._size, b""

    def _record(self, at: int) -> Record:
        size, key_size = self._bytes.number(), self._bytes.number()
        if not 4 <= key_size <= size:
            raise self.damaged(f"a record of {size} bytes has a key of {key_size}", at)
        key = self._payload(self._bytes.take(key_size), at)
        value = self._bytes.take(size - key_size)
        return key, self._payload(value if self._unpack is None else self._unpacked(value, at), at)

    def _block(self) -> Iterator[Record]:
        at = self._bytes.at
        count = self._bytes.vint()
        parts = [self._bytes.take(self._length(self._bytes.vint(), at)) for _ in range(4)]
        key_sizes, keys, value_sizes, values = (self._unpacked(part, at) for part in parts)
        found = self._cut(key_sizes, keys, count, at), self._cut(value_sizes, values, count, at)
        yield from zip(*found, strict=True)

    def _cut(self, sizes: bytes, data: bytes, count: int, at: int) -> Iterator[bytes]:
        """The `count` byte strings that stand behind each other in a block."""
        lengths = _Bytes(self, 0, len(sizes), sizes)
        place = 0
        for _ in range(count):
            size = self._length(lengths.vint(), at)
            yield self._payload(data[place : place + size], at)
            place += size

    def _length(self, size: int, at: int) -> int:
        if size < 0:
            raise self.damaged(f"a length of {size}", at)
        return size

    def _unpacked(self, data: bytes, at: int) -> bytes:
        assert self._unpack is not None
        try:
            return self._unpack(data)
        except Exception as error:  # each codec has exceptions of its own
            raise self.damaged(f"a value cannot be unpacked ({error})", at) from None

    def _payload(self, written: bytes, at: int) -> bytes:
        """The bytes of a BytesWritable: their number comes first."""
        if len(written) < 4 or struct.unpack_from(">i", written)[0] != len(written) - 4:
            raise self.damaged(f"a key or value of {len(written)} bytes says another length", at)
        return written[4:]


class _Bytes:
    """A place in a reader's file that moves on. Raises the reader's errors.

    `data`: what is known of the file from there on. `wanted`: little behind that will be asked for.
    """

    def __init__(
        self, reader: SequenceReader, at: int, end: int, data: bytes = b"", wanted: int = 0
    ):
        self._reader = reader
        self._end, self._wanted = end, wanted
        self._begin, self._data = at, data
        self.at = at

    @property
    def left(self) -> int:
        return self._end - self.at

    def peek(self, size: int) -> bytes:
        if not 0 <= size <= self.left:
            raise self._reader.damaged("it ends in the middle of a record", self.at)
        place = self.at - self._begin
        if not 0 <= place <= len(self._data) - size:
            kept = self._data[place:] if 0 <= place < len(self._data) else b""
            at = self.at + len(kept)
            window = min(_WINDOW, max(self._wanted - at, _LEAST_WINDOW))
            count = min(max(size - len(kept), window), self._end - at)
            self._begin, self._data = self.at, kept + self._reader._file.read_at(at, count)
            place = 0
        if len(found := self._data[place : place + size]) < size:
            raise self._reader.damaged("it ends", self.at)
        return found

    def take(self, size: int) -> bytes:
        found = self.peek(size)
        self.at += size
        return found

    def skip(self, size: int) -> None:
        if size > self.left:
            raise self._reader.damaged("it ends in the middle of a record", self.at)
        self.at += size

    def number(self) -> int:
        """Four bytes."""
        number: int = struct.unpack(">i", self.take(4))[0]
        if number < 0:
            raise self._reader.damaged(f"a length of {number}", self.at - 4)
        return number

    def vint(self) -> int:
        """Hadoop's number of one to nine bytes."""
        first = struct.unpack("b", self.take(1))[0]
        if first >= -112:
            return first
        size, negative = (-120 - first, True) if first < -120 else (-112 - first, False)
        number = int.from_bytes(self.take(size), "big")
        return ~number if negative else number

    def text(self) -> str:
        size = self.vint()
        if size < 0:
            raise self._reader.damaged(f"a text of length {size}", self.at)
        return self.take(size).decode("utf-8", "replace")
