"""Rows that are read anew in each epoch: each once, in an order that follows from the seed."""

import itertools
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hearth.rows.file_rows import FileRows
from hearth.rows.row_epochs import RowEpochs, epoch_order


@pytest.fixture
def rows(tmp_path):
    """1,000 rows in five files of row groups of 30."""
    for first in range(0, 1000, 200):
        table = pa.table({"id": list(range(first, first + 200))})
        pq.write_table(table, tmp_path / f"part-{first:03}.parquet", row_group_size=30)
    return FileRows(str(tmp_path), ("id",)).pin()


def take(rows, rank=0, world=1, first=0, count=3, seed=7):
    epochs = RowEpochs(rows, seed).read(rank, world, first)
    return [
        [value for batch in next(epochs) for value in batch.column(0).to_pylist()]
        for _ in range(count)
    ]


@pytest.mark.parametrize("world", [1, 2, 3, 50])
def test_every_epoch_has_every_row_once(rows, world):
    shares = [take(rows, rank, world) for rank in range(world)]
    for epoch in range(3):
        ids = [value for share in shares for value in share[epoch]]
        assert sorted(ids) == list(range(1000))


def test_the_order_is_another_in_each_epoch_and_the_same_for_a_later_start(rows):
    first, second, third = take(rows)
    assert first != second != third
    assert first != list(range(1000))
    assert take(rows, first=1, count=2) == [second, third]
    assert take(rows, seed=8)[0] != first


def test_pieces_are_row_groups_whose_rows_stay_together(rows):
    (ids,) = take(rows, count=1)
    jumps = sum(b != a + 1 for a, b in itertools.pairwise(ids))
    assert 20 < jumps < 35  # seven groups in each of five files


def test_the_order_is_the_same_on_every_machine():
    assert epoch_order(8, "7 0 0") == [2, 6, 0, 3, 1, 5, 4, 7]


def test_other_files_have_another_hash(rows, tmp_path):
    before = RowEpochs(rows, 7).files_hash(0, 2)
    assert before == RowEpochs(FileRows(rows.uri, rows.columns), 7).files_hash(0, 2)
    assert before != RowEpochs(rows, 7).files_hash(1, 2)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "part-999.parquet")
    assert before != RowEpochs(FileRows(rows.uri, rows.columns), 7).files_hash(0, 2)
    assert 0 <= before < 1 << 63


def test_a_file_that_changes_between_epochs_is_an_error(rows, tmp_path):
    epochs = RowEpochs(rows, 7).read(0, 1, 0)
    assert len(list(next(epochs)))
    with open(tmp_path / "part-400.parquet", "ab") as file:
        file.write(b"more")
    with pytest.raises(ValueError, match=r"part-400.parquet has \d+ bytes instead of"):
        list(next(epochs))
    os.remove(tmp_path / "part-400.parquet")
    with pytest.raises(ValueError, match="cannot be found"):
        list(next(epochs))
