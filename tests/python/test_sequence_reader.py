"""SequenceFiles are read from the middle: each record belongs to one range, and damage causes at
most an error that names the file.
"""

import bz2
import gzip
import io
import random
import struct
import zlib

import pyarrow as pa
import pytest
from hearth.native._core import SequenceReader

from hearth.caffeonspark.tools import sequence_parts
from hearth.sources.sequence_codecs import codec

CODECS = {"DefaultCodec": zlib.compress, "GzipCodec": gzip.compress, "BZip2Codec": bz2.compress}
MARK = bytes(range(100, 116))
CLASS = b"org.apache.hadoop.io.BytesWritable"


class Memory:
    def __init__(self, data):
        self.data = data

    def read_at(self, at, size):
        return self.data[at : at + size]


def reader(data):
    return SequenceReader("hdfs://h/a.seq", Memory(data), len(data), codec)


def records(data, begin, end):
    """The records of a range, read in small batches."""
    own = reader(data)
    own.begin(begin, end)
    while found := own.next(7, 1000):
        keys, *buffers = found
        buffers = [None, *map(pa.py_buffer, buffers)]
        values = pa.Array.from_buffers(pa.binary_view(), len(keys), buffers)
        values.validate(full=True)
        yield from zip(keys, values.to_pylist(), strict=True)


def records_of(count, longest=300):
    draw = random.Random(count)
    return [(b"%d" % i, draw.randbytes(draw.randrange(longest))) for i in range(count)]


def plain(records, monkeypatch, interval=1000):
    monkeypatch.setattr(sequence_parts, "_INTERVAL", interval)
    file = io.BytesIO()
    sequence_parts.write_records(file, records)
    return file.getvalue()


def header(in_blocks, codec):
    name = b"org.apache.hadoop.io.compress." + codec.encode()
    classes = (bytes([len(CLASS)]) + CLASS) * 2
    metadata = struct.pack(">i", 1) + b"\x03who\x02me"
    return b"SEQ\6" + classes + bytes([1, in_blocks, len(name)]) + name + metadata + MARK


def written(data):
    return struct.pack(">i", len(data)) + data


def vint(number):
    """Hadoop's variable-length integer: one byte up to 127, else a size byte and the value."""
    if number <= 127:
        return struct.pack("b", number)
    size = (number.bit_length() + 7) // 8
    return struct.pack("b", -112 - size) + number.to_bytes(size, "big")


def packed_alone(records, codec):
    """A file with separately compressed values, and a sync mark before every third record."""
    data = header(False, codec)
    for i, (key, value) in enumerate(records):
        packed = CODECS[codec](written(value))
        data += b"\xff" * 4 + MARK if i % 3 == 2 else b""
        data += struct.pack(">ii", len(key) + 4 + len(packed), len(key) + 4) + written(key) + packed
    return data


def packed_in_blocks(records, codec, together=20):
    data = header(True, codec)
    for at in range(0, len(records), together):
        block = records[at : at + together]
        data += b"\xff" * 4 + MARK + vint(len(block))
        for part in zip(*block, strict=True):
            sizes = CODECS[codec](b"".join(vint(len(one) + 4) for one in part))
            content = CODECS[codec](b"".join(map(written, part)))
            data += vint(len(sizes)) + sizes + vint(len(content)) + content
    return data


@pytest.fixture(params=["plain", *CODECS, "in blocks"])
def file(request, monkeypatch):
    records = records_of(150)
    if request.param == "plain":
        return records, plain(records, monkeypatch)
    if request.param == "in blocks":
        return records, packed_in_blocks(records, "DefaultCodec")
    return records, packed_alone(records, request.param)


def test_each_record_is_in_one_range_however_the_file_is_cut(file):
    written, data = file
    draw = random.Random(3)
    for pieces in (1, 2, 3, 10, 60, len(data)):
        cuts = sorted(draw.sample(range(1, len(data)), pieces - 1)) if pieces > 1 else []
        ranges = list(zip([0, *cuts], [*cuts, len(data)], strict=True))
        assert [r for begin, end in ranges for r in records(data, begin, end)] == written
        assert sum(reader(data).count(*each) for each in ranges) == len(written)
        if pieces == 3:
            assert max(reader(data).count(*each) for each in ranges) < len(written)


def test_values_larger_than_a_window_and_empty_ones(monkeypatch):
    large = [(b"a", random.Random(1).randbytes(3_000_000)), (b"", b""), (b"c", b"end")]
    data = plain(large, monkeypatch)
    assert list(records(data, 0, len(data))) == large
    empty = plain([], monkeypatch)
    assert list(records(empty, 0, len(empty))) == []


def test_no_damage_does_more_than_an_error_that_names_the_file(file):
    _, data = file
    draw = random.Random(5)
    refused = 0
    for turn in range(600):
        damaged = bytearray(data)
        if turn % 3 == 0:
            del damaged[draw.randrange(len(damaged)) :]
        for _ in range(min(len(damaged), draw.randrange(1, 4))):
            damaged[draw.randrange(min(len(damaged), 400 if turn % 2 else 1 << 30))] = draw.choice(
                (0, 0x7F, 0x80, 0xFF, draw.randrange(256))
            )
        try:
            for key, value in records(bytes(damaged), 0, len(damaged)):
                assert len(key) + len(value) <= 1 << 20
        except ValueError as error:
            refused += 1
            assert str(error).startswith("hdfs://h/a.seq ")
    assert refused > 300


def test_codecs_that_only_hadoop_reads_are_reported(monkeypatch):
    data = plain(records_of(3), monkeypatch)
    lzo = header(False, "LzoCodec")
    texts = data.replace(b"\x22" + CLASS, b"\x19org.apache.hadoop.io.Text", 1)
    for content, said in (
        (b"SEQ\5" + data[4:], "a SequenceFile of version 5"),
        (b"PAR1" + data[4:], "not a SequenceFile"),
        (lzo, "compressed by org.apache.hadoop.io.compress.LzoCodec"),
        (texts, "keys or values of class org.apache.hadoop.io.Text"),
    ):
        with pytest.raises(ValueError, match=said):
            reader(content)
