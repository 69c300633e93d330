"""A remote Parquet file's next row group is fetched while the previous one is used."""

import threading
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hearth import data
from hearth.sources.owners import joined
from hearth.sources.read_ahead import ReadAhead
from hearth.sources.read_ahead import joined as joined_ranges


class File:
    """1,000 bytes; `fetches` lists the reads, and whether each came from the main thread."""

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


def test_a_unit_is_fetched_while_the_one_before_is_read():
    file = File()
    ahead = ReadAhead(file, {"a": [(0, 100)], "b": [(100, 300), (500, 1000)]})
    ahead.begin("a")
    assert all(file.asked.acquire(timeout=60) for _ in range(2))  # fetched before any read
    assert ahead.read_at(10, 50) == file.content[10:60]
    ahead.begin("b")
    assert ahead.read_at(100, 200) == file.content[100:300]
    assert ahead.read_at(510, 90) == file.content[510:600]
    assert file.fetches == [(0, 100, False), (100, 900, False)]
    assert ahead.read_at(0, 10) == file.content[:10]
    assert file.fetches[-1] == (0, 10, True)  # bytes outside the units are read directly


def test_units_may_be_left_out():
    ahead = ReadAhead(File(), {number: [(number, number + 5)] for number in range(4)})
    for number in (1, 3):
        ahead.begin(number)
        assert ahead.read_at(number, 5) == bytes(range(number, number + 5))


@pytest.mark.parametrize("ranges", [[(-5, 10)], [(2000, 3000)], [(50, 20)], [(0, 1 << 62)]])
def test_a_footer_that_names_any_offset_makes_no_huge_read(ranges):
    file = File()
    ReadAhead(file, {0: ranges}).begin(0)
    assert all(0 <= at < at + size <= 1000 for at, size, _ in file.fetches)


def test_a_failed_fetch_raises_when_its_unit_is_read():
    file = SimpleNamespace(size=lambda: 1000)

    def read_at(at, size):
        if at:
            raise OSError("the connection ended")
        return b"x" * size

    file.read_at = read_at
    ahead = ReadAhead(file, {0: [(0, 5)], 1: [(5, 10)]})
    ahead.begin(0)
    with pytest.raises(OSError, match="the connection ended"):
        ahead.begin(1)


def test_ranges_that_lie_close_to_each_other_are_fetched_at_once():
    mib = 1 << 20
    assert joined_ranges([(5 * mib, 6 * mib), (0, mib), (mib + 10, 2 * mib)]) == [
        (0, 2 * mib),
        (5 * mib, 6 * mib),
    ]


def test_of_remote_files_only_the_wanted_columns_are_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr("hearth.sources.read_ahead._GAP_BYTES", 10)
    table = pa.table({name: range(10_000) for name in ("a", "b", "c", "d")})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=5000, compression="none")
    source = data.parquet(f"local://{tmp_path}").pin()
    for columns, share in ((["a"], 1), (["a", "c"], 2), (["a", "b", "c", "d"], 4)):
        sizes = []
        chosen = source.select([(name, name) for name in columns])
        batches = [b for s in joined(chosen.splits()) for b in chosen.read(s, sizes.append)]
        assert pa.Table.from_batches(batches).equals(table.select(columns))
        assert 0.9 * share < 4 * sum(sizes) / (tmp_path / "x.parquet").stat().st_size < 1.1 * share
