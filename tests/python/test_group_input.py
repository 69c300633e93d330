"""The next row group of a far Parquet file comes while the one before is used."""

import threading
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hearth.rows import group_input
from hearth.rows.group_input import GroupInput, ranges_of


class File:
    """1,000 bytes; `fetches` are the reads, each with the thread that it came from."""

    def __init__(self):
        self.content = bytes(i % 251 for i in range(1000))
        self.fetches = []
        self.asked = threading.Semaphore(0)

    def size(self):
        return len(self.content)

    def read_at(self, at, size):
        self.fetches.append((at, size, threading.current_thread() is threading.main_thread()))
        self.asked.release()
        return self.content[at : at + size]


def test_a_group_is_fetched_while_the_one_before_is_read():
    file = File()
    ahead = GroupInput(file)
    for number in ahead.each([[(0, 100)], [(100, 300), (500, 600)]]):
        if number == 0:  # the next one comes, though nothing was read of this
            assert all(file.asked.acquire(timeout=10) for _ in range(3))
            assert ahead.read_at(10, 50) == file.content[10:60]
        else:
            assert ahead.read_at(100, 200) == file.content[100:300]
            assert ahead.read_at(510, 90) == file.content[510:600]
    assert [main for _, _, main in file.fetches] == [False] * 3
    assert ahead.read_at(0, 10) == file.content[:10]
    assert file.fetches[-1] == (0, 10, True)  # what is not here is read as ever


@pytest.mark.parametrize("ranges", [[(-5, 10)], [(2000, 3000)], [(50, 20)], [(0, 1 << 62)]])
def test_a_footer_that_names_any_place_makes_no_huge_read(ranges):
    file = File()
    assert list(GroupInput(file).each([ranges])) == [0]
    assert all(0 <= at < at + size <= 1000 for at, size, _ in file.fetches)


def test_a_failure_of_a_fetch_comes_when_its_group_is_due():
    file = SimpleNamespace(size=lambda: 1000)

    def read_at(at, size):
        if at:
            raise OSError("the connection ended")
        return b"x" * size

    file.read_at = read_at
    seen = []
    with pytest.raises(OSError, match="the connection ended"):
        for number in GroupInput(file).each([[(0, 5)], [(5, 10)]]):
            seen.append(number)
    assert seen == [0]


def test_only_the_chunks_of_the_columns_are_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr(group_input, "_GAP_BYTES", 10)
    names = ("a", "b", "c", "d")
    table = pa.table({name: range(10_000) for name in names})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=5000, compression="none")
    group = pq.read_metadata(tmp_path / "x.parquet").row_group(1)
    chunks = {name: ranges_of(group, [name])[0] for name in names}
    assert ranges_of(group, []) == [(chunks["a"][0], chunks["d"][1])]
    assert ranges_of(group, ["a", "b"]) == [(chunks["a"][0], chunks["b"][1])]
    assert ranges_of(group, ["a", "c"]) == [chunks["a"], chunks["c"]]
