"""SequenceFiles of images: every record once for any ranges, mapped or read in windows."""

from __future__ import annotations

import pickle
import random
import struct

import pytest
from hearth.native._core import image_key

from hearth import data
from hearth.caffeonspark.tools.sequence_keys import datum_key, pair_key
from hearth.caffeonspark.tools.sequence_parts import write_records
from hearth.files.input_files import InputFile
from hearth.sources.rank_rows import RankRows

# Up to 12 bytes Arrow stores a value inline; the longest value exceeds the distance of two marks.
SIZES = [0, 1, 12, 13, 700, 5000, 150_000]


def images(count):
    return [(f"{i:03d}", bytes([i % 251]) * SIZES[i % len(SIZES)]) for i in range(count)]


def write(path, records):
    with open(path, "wb") as file:
        write_records(file, records)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sequence")
    records = [(pair_key(name, "7"), data) for name, data in images(300)]
    write(folder / "part-00000", records[:200])
    write(folder / "part-00001", [])
    write(folder / "part-00002", records[200:])
    (folder / "_SUCCESS").touch()
    (folder / ".part-00000.crc").write_bytes(b"none")
    return folder


def read(uri, parts=1):
    """The rows of all parts, each read in place, as by a rank of a run."""
    rows = RankRows(data.sequence_file(str(uri)).pin().in_place())
    found = []
    for part in range(parts):
        for batch in pickle.loads(pickle.dumps(rows)).read(part, parts):
            batch.validate(full=True)
            found += batch.to_pylist()
    return found


@pytest.mark.parametrize("parts", [1, 2, 3, 8, 400])
def test_each_record_is_read_once_and_in_order(folder, parts):
    found = read(folder, parts)
    assert [(row["id"], row["data"]) for row in found] == images(300)
    assert {(row["label"], row["encoded"], row["channels"]) for row in found} == {("7", True, None)}


def test_batches_outlive_the_reading(folder):
    rows = RankRows(data.sequence_file(str(folder / "part-00000")).pin().in_place())
    batches = list(rows.read(0, 1))
    values = [value for batch in batches for value in batch.column("data").to_pylist()]
    assert values == [value for _, value in images(200)]
    assert all(batch.nbytes < 5 << 20 for batch in batches)


@pytest.mark.parametrize("scheme", ["", "local://"])
def test_reading_of_units_may_be_interleaved(folder, scheme):
    source = data.sequence_file(f"{scheme}{folder}/part-00000").pin()
    key = (0, source.size)
    read = source.format.open(InputFile(source.pinned.files[0]), source.schema(), [key])
    first = read(key)
    begun = [next(first)]
    whole = list(read(key))
    assert len(whole) > 1 and begun + list(first) == whole


def test_codecs_that_only_hadoop_reads_are_refused(tmp_path):
    write(tmp_path / "plain", [(pair_key("a", "1"), b"x")])
    plain = (tmp_path / "plain").read_bytes()
    flags = plain.index(b"\0\0\0\0\0\0")
    (tmp_path / "old").write_bytes(plain.replace(b"SEQ\6", b"SEQ\5", 1))
    (tmp_path / "short").write_bytes(plain[: flags + 10])
    (tmp_path / "text").write_text("SEQ of what")
    for name in ("old", "short", "text"):
        with pytest.raises(ValueError, match=rf"{tmp_path}/{name}"):
            data.sequence_file(str(tmp_path / name)).pin()
    with pytest.raises(ValueError, match=r"/(old|short|text) "):
        data.sequence_file(str(tmp_path)).pin()


def test_damage_is_an_error_that_names_the_file_or_another_row(tmp_path):
    path = tmp_path / "seq"
    write(path, [(pair_key(f"{i}", "1"), bytes([i]) * 30) for i in range(5)])
    whole = path.read_bytes()
    random.seed(3)
    said = 0
    offsets = {len(whole) - 35, *(random.randrange(70, len(whole)) for _ in range(300))}
    for offset in offsets:
        for value in (0x00, 0x7F, 0xFF):
            path.write_bytes(whole[:offset] + bytes([value]) + whole[offset + 1 :])
            try:
                read(path, 2)
            except ValueError as error:
                assert str(path) in str(error)
                said += 1
    assert said > 30  # most bytes are in keys or images
    for size in range(120, len(whole)):
        path.write_bytes(whole[:size])
        try:
            assert len(read(path)) < 5
        except ValueError as error:
            assert "is damaged" in str(error)


@pytest.mark.parametrize("scheme", ["", "local://"])
def test_a_record_with_an_invalid_key_has_nulls(tmp_path, scheme):
    keys = [pair_key("a", "1"), b"\0\1", datum_key("b", "2", 1, 28, 28, False)]
    write(tmp_path / "seq", [(key, b"data") for key in keys])
    found = read(f"{scheme}{tmp_path}/seq")
    assert [row["data"] for row in found] == [b"data", None, b"data"]
    assert found[1]["id"] == "key 36de2269" and found[1]["label"] is None
    assert [found[2][name] for name in ("label", "height", "encoded")] == ["2", 28, False]


def test_keys_have_the_values_that_java_wrote():
    images = [(f"{i:05d}", str(i % 13), 3, 256, i % 3, bool(i % 2)) for i in range(100)]
    assert [image_key(datum_key(*image)) for image in images] == images
    texts = [("a", "1"), ("ä", "x"), ("a", "a"), ("", ""), ("scala", "1"), ("c\0", "3")]
    texts += [("p" * 200, "1"), ("ß" * 100, "2"), ("rocket \U0001f680", "ä"), ("q" * 1100, "1")]
    for both in texts:
        assert image_key(pair_key(*both)) == (*both, None, None, None, True)
    key = pair_key("q" * 1100, "1")
    text = key.index(b"t\x04\x4c")
    long = key[:text] + b"|" + struct.pack(">Q", 70_000) + b"q" * 70_000 + b"t\0\x011"
    assert image_key(long) == ("q" * 70_000, "1", None, None, None, True)
    half = pair_key("half", "1").replace(b"half", b"\xed\xa0\x80x")  # a lone surrogate
    assert image_key(half) is None


def heirs(count):
    """An object whose class has `count` ancestors, described in the first class's annotations."""
    key = b"\xac\xed\x00\x05s"
    key += b"r\0\1a" + bytes(8) + b"\2\0\0"  # a class whose annotations contain the others
    for i in range(count):
        above = b"p" if i == 0 else b"q" + (0x7E0000 + i).to_bytes(4, "big")
        key += b"r\0\1b" + bytes(8) + b"\2\0\0x" + above
    return key + b"xq" + (0x7E0000 + count).to_bytes(4, "big")


def test_no_damage_of_a_key_does_more_than_leave_it_unread():
    key = datum_key("name", "7", 1, 28, 28, False)
    for size in range(len(key)):
        assert image_key(key[:size]) is None
        for value in (0, 0x71, 0x73, 0x7E, 0xFF):
            image_key(key[:size] + bytes([value]) + key[size + 1 :])
    assert image_key(heirs(2000)) is None
    itself = b"\xac\xed\x00\x05sr\0\1a" + bytes(8) + b"\2\0\0xq" + (0x7E0000).to_bytes(4, "big")
    assert image_key(itself) is None
