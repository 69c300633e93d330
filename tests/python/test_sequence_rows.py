"""Plain SequenceFiles of pictures are read without Spark: every record once, in any parts."""

from __future__ import annotations

import pickle
import random
import struct

import pytest

from hearth.caffeonspark.sequence_rows import SequenceRows, _batches
from hearth.caffeonspark.tools.sequence_keys import pair_key, picture_key
from hearth.caffeonspark.tools.sequence_parts import write_records
from hearth.sources.image_keys import ImageKeys, picture_of

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


def rows_of(rows, parts):
    found = []
    for part in range(parts):
        for batch in rows.read(part, parts):
            batch.validate(full=True)
            found += batch.to_pylist()
    return found


@pytest.mark.parametrize("parts", [1, 2, 3, 8, 400])
def test_each_record_comes_once_and_in_order(folder, parts):
    rows = pickle.loads(pickle.dumps(SequenceRows.find(str(folder))))
    found = rows_of(rows, parts)
    assert [(row["id"], row["data"]) for row in found] == pictures(300)
    assert {(row["label"], row["encoded"], row["channels"]) for row in found} == {("7", True, None)}


def test_a_part_may_end_anywhere_at_a_mark_and_beside_it(tmp_path):
    write(tmp_path / "seq", [(pair_key(name, "7"), data) for name, data in pictures(20)])
    whole = (tmp_path / "seq").read_bytes()
    mark = whole.index(b"\xff\xff\xff\xff", 200_000)
    for cut in (0, 60, mark - 1, mark, mark + 1, mark + 20, len(whole) - 1, len(whole)):
        file = str(tmp_path / "seq"), len(whole)
        parts = [*_batches(*file, 0, cut), *_batches(*file, cut, len(whole))]
        found = [name for batch in parts for name in batch.column("id").to_pylist()]
        assert found == [name for name, _ in pictures(20)], cut


def test_batches_outlive_the_reading(folder):
    batches = list(SequenceRows.find(str(folder / "part-00000")).read(0, 1))
    data = [value for batch in batches for value in batch.column("data").to_pylist()]
    assert data == [data for _, data in pictures(200)]
    assert all(batch.nbytes < 5 << 20 for batch in batches)


def test_what_is_not_plain_is_left_to_spark(tmp_path):
    write(tmp_path / "plain", [(pair_key("a", "1"), b"x")])
    plain = (tmp_path / "plain").read_bytes()
    flags = plain.index(b"\0\0\0\0\0\0")
    (tmp_path / "compressed").write_bytes(plain[:flags] + b"\1" + plain[flags + 1 :])
    (tmp_path / "short").write_bytes(plain[: flags + 10])
    (tmp_path / "text").write_text("SEQ of what")
    for name in ("compressed", "short", "text", "gone"):
        assert SequenceRows.find(str(tmp_path / name)) is None, name
    assert SequenceRows.find(str(tmp_path)) is None
    assert SequenceRows.find(str(tmp_path / "plain")).files[0][1] == len(plain)


def test_a_file_that_changes_in_between_is_said(tmp_path):
    write(tmp_path / "seq", [(pair_key("a", "1"), b"x")])
    rows = SequenceRows.find(str(tmp_path / "seq"))
    with (tmp_path / "seq").open("ab") as file:
        file.write(b"more")
    with pytest.raises(ValueError, match=r"seq has \d+ bytes instead of \d+ on host"):
        list(rows.read(0, 1))


def test_damage_is_an_error_that_names_the_byte_or_another_row(tmp_path):
    path = tmp_path / "seq"
    write(path, [(pair_key(f"{i}", "1"), bytes([i]) * 30) for i in range(5)])
    whole = path.read_bytes()
    random.seed(3)
    said = 0
    places = {len(whole) - 35, *(random.randrange(70, len(whole)) for _ in range(300))}
    for place in places:
        for value in (0x00, 0x7F, 0xFF):
            path.write_bytes(whole[:place] + bytes([value]) + whole[place + 1 :])
            if (rows := SequenceRows.find(str(path))) is None:
                continue
            try:
                rows_of(rows, 2)
            except ValueError as error:
                assert f"{path} is damaged at byte " in str(error)
                said += 1
    assert said > 30  # most bytes are of keys and pictures
    for size in range(120, len(whole)):
        path.write_bytes(whole[:size])
        found = SequenceRows.find(str(path))
        try:
            assert len(rows_of(found, 1)) < 5
        except ValueError as error:
            assert "is damaged at byte" in str(error)


def test_a_record_whose_key_is_none_has_nulls(tmp_path):
    keys = [pair_key("a", "1"), b"\0\1", picture_key("b", "2", 1, 28, 28, False)]
    write(tmp_path / "seq", [(key, b"data") for key in keys])
    found = rows_of(SequenceRows.find(str(tmp_path / "seq")), 1)
    assert [row["data"] for row in found] == [b"data", None, b"data"]
    assert found[1]["id"].startswith("key ") and found[1]["label"] is None
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
