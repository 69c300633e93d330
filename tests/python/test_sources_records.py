"""SequenceFiles of images: every record once, in any ranges, by the core or by Python."""

from __future__ import annotations

import pickle
import random
import struct

import pytest

from hearth import data
from hearth.caffeonspark.tools.sequence_keys import pair_key, picture_key
from hearth.caffeonspark.tools.sequence_parts import write_records
from hearth.files.input_files import InputFile
from hearth.files.stored_files import StoredFile
from hearth.sources.image_keys import ImageKeys, picture_of
from hearth.sources.rank_rows import RankRows
from hearth.sources.sequence_file import _Mapped
from hearth.sources.sequence_reader import SequenceReader

# Some have 12 bytes or fewer, which Arrow keeps elsewhere; some are longer than what lies between
# two marks.
SIZES = [0, 1, 12, 13, 700, 5000, 150_000]


def pictures(count):
    return [(f"{i:03d}", bytes([i % 251]) * SIZES[i % len(SIZES)]) for i in range(count)]


def write(path, records):
    with open(path, "wb") as file:
        write_records(file, records)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sequence")
    records = [(pair_key(name, "7"), data) for name, data in pictures(300)]
    write(folder / "part-00000", records[:200])
    write(folder / "part-00001", [])
    write(folder / "part-00002", records[200:])
    (folder / "_SUCCESS").touch()
    (folder / ".part-00000.crc").write_bytes(b"none")
    return folder


def read(uri, parts=1):
    """The rows of all parts, each read as a rank of a run reads it, in place."""
    rows = RankRows(data.sequence_file(str(uri)).pin().in_place())
    found = []
    for part in range(parts):
        for batch in pickle.loads(pickle.dumps(rows)).read(part, parts):
            batch.validate(full=True)
            found += batch.to_pylist()
    return found


@pytest.mark.parametrize("parts", [1, 2, 3, 8, 400])
def test_each_record_comes_once_and_in_order(folder, parts):
    found = read(folder, parts)
    assert [(row["id"], row["data"]) for row in found] == pictures(300)
    assert {(row["label"], row["encoded"], row["channels"]) for row in found} == {("7", True, None)}


def test_a_range_may_end_anywhere_for_both_readers(tmp_path):
    """Of plain local files the core reads the ranges, of others Python does."""
    path = tmp_path / "seq"
    write(path, [(pair_key(name, "7"), data) for name, data in pictures(20)])
    whole = path.read_bytes()
    marks = [at for at in range(len(whole)) if whole.startswith(b"\xff\xff\xff\xff", at)]
    around = [mark + more for mark in marks[:5] for more in (-1, 0, 1, 20)]
    file = InputFile(StoredFile(str(path), len(whole)))
    names = [name for name, _ in pictures(20)]
    for cut in (1, 60, 98, 99, 100, *around, len(whole) - 1, len(whole)):
        reader = SequenceReader(str(path), file, len(whole))
        own = [[key for key, _ in reader.records(*ends)] for ends in ((0, cut), (cut, len(whole)))]
        core = [
            [key for keys, _, _ in _Mapped(file).records(*ends) for key in keys]
            for ends in ((0, cut), (cut, len(whole)))
        ]
        other = SequenceReader(str(path), file, len(whole))
        assert own[1] == [key for key, _ in other.records(cut, len(whole))], cut
        assert own == core, cut
        assert [picture_of(key)[0] for keys in own for key in keys] == names


def test_batches_outlive_the_reading(folder):
    rows = RankRows(data.sequence_file(str(folder / "part-00000")).pin().in_place())
    batches = list(rows.read(0, 1))
    values = [value for batch in batches for value in batch.column("data").to_pylist()]
    assert values == [value for _, value in pictures(200)]
    assert all(batch.nbytes < 5 << 20 for batch in batches)


def test_what_hadoop_alone_reads_is_refused(tmp_path):
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
    places = {len(whole) - 35, *(random.randrange(70, len(whole)) for _ in range(300))}
    for place in places:
        for value in (0x00, 0x7F, 0xFF):
            path.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            try:
                read(path, 2)
            except ValueError as error:
                assert str(path) in str(error)
                said += 1
    assert said > 30  # most bytes are of keys and pictures
    for size in range(120, len(whole)):
        path.write_bytes(whole[:size])
        try:
            assert len(read(path)) < 5
        except ValueError as error:
            assert "is damaged" in str(error)


@pytest.mark.parametrize("scheme", ["", "local://"])
def test_a_record_whose_key_is_none_has_nulls(tmp_path, scheme):
    keys = [pair_key("a", "1"), b"\0\1", picture_key("b", "2", 1, 28, 28, False)]
    write(tmp_path / "seq", [(key, b"data") for key in keys])
    found = read(f"{scheme}{tmp_path}/seq")
    assert [row["data"] for row in found] == [b"data", None, b"data"]
    assert found[1]["id"] == "key 36de2269" and found[1]["label"] is None
    assert [found[2][name] for name in ("label", "height", "encoded")] == ["2", 28, False]


def test_keys_of_one_form_are_read_as_each_alone():
    keys = [picture_key(f"{i:05d}", str(i % 13), 3, 256, i % 3, bool(i % 2)) for i in range(100)]
    texts = [("a", "1"), ("b", "2"), ("ä", "x"), ("a", "a"), ("", ""), ("scala", "1"), ("c\0", "3")]
    texts += [("p" * 200, "1"), ("p" * 201, "2"), ("ß" * 100, "2"), ("p", "ä")]
    keys += [pair_key(*both) for both in texts]
    keys.append(pair_key("q" * 1100, "1"))
    text = keys[-1].index(b"t\x04\x4c")
    keys.append(keys[-1][:text] + b"|" + struct.pack(">Q", 70_000) + b"q" * 70_000 + b"t\0\x011")
    assert picture_of(keys[-1]) == ("q" * 70_000, "1", None, None, None, True)
    reader = ImageKeys()
    assert [reader.picture_of(key) for key in keys] == [picture_of(key) for key in keys]
    for key in (keys[0], pair_key("a", "1")):
        assert reader.picture_of(key) is not None
        for size in range(len(key)):
            assert reader.picture_of(key[:size]) is None
