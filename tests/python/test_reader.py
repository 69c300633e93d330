"""Any number of ranks together read every row exactly once, in file order."""

import pickle
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hearth import data
from hearth.rows import file_reader
from hearth.sources.columns import parse_column
from hearth.sources.rank_rows import RankRows
from hearth.sources.source import Piece, Split


def write(folder, sizes, group=7):
    """Writes files with these row counts and consecutive ids; returns the ids."""
    first = 0
    for index, size in enumerate(sizes):
        ids = list(range(first, first + size))
        table = pa.table({"id": pa.array(ids, pa.int64()), "label": pa.array(ids, pa.int64())})
        pq.write_table(table, folder / f"part-{index:03}.parquet", row_group_size=group)
        first += size
    return list(range(first))


def read(source, rank, world, columns=("id",)):
    batches = file_reader.read_rows(str(source), columns, rank, world)
    return [value for batch in batches for value in batch.column(0).to_pylist()]


@pytest.mark.parametrize("world", [1, 2, 3, 5, 40])
@pytest.mark.parametrize("sizes", [[0], [1], [20], [7, 0, 13], [1, 1, 1], [64, 3]])
def test_ranks_share_all_rows_in_order(tmp_path, sizes, world):
    ids = write(tmp_path, sizes)
    parts = [read(tmp_path, rank, world) for rank in range(world)]
    assert [value for part in parts for value in part] == ids
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_single_file_by_uri(tmp_path):
    ids = write(tmp_path, [10])
    assert read(f"file:{tmp_path}/part-000.parquet", 0, 1) == ids
    assert read(f"file://{tmp_path}/part-000.parquet", 0, 1) == ids


def test_hidden_files_of_spark_are_ignored(tmp_path):
    ids = write(tmp_path, [4])
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part-000.parquet.crc").write_bytes(b"crc!")
    assert read(tmp_path, 0, 1) == ids


def test_dataframe_column_select_renames_columns(tmp_path):
    write(tmp_path, [3])
    (batch,) = file_reader.read_rows(str(tmp_path), ["label as id", "id as data"], 0, 1)
    assert batch.schema.names == ["id", "data"]


def test_without_columns_all_are_read(tmp_path):
    write(tmp_path, [3])
    (batch,) = file_reader.read_rows(str(tmp_path), [], 0, 1)
    assert batch.schema.names == ["id", "label"]


def test_a_missing_column_is_named_with_existing_ones(tmp_path):
    write(tmp_path, [3])
    with pytest.raises(ValueError, match=r"column 'image' is not in .* which has: id, label"):
        next(file_reader.read_rows(str(tmp_path), ["image"], 0, 1))


def test_a_missing_path_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        next(file_reader.read_rows(f"file:{tmp_path}/nowhere", [], 0, 1))


@pytest.mark.parametrize(
    "item",
    [
        "cast(id as string) as id",
        "cast(id as int)",
        "id+1 as id",
        "upper(id) as id",
        "1 as id",
        "7",
    ],
)
def test_an_expression_is_not_a_column(item):
    with pytest.raises(ValueError, match="neither a column name"):
        parse_column(item)


def test_columns_of_any_name_are_read(tmp_path):
    names = ["0", "my-column", "two words", "größe"]
    table = pa.table({name: [i] for i, name in enumerate(names)})
    pq.write_table(table, tmp_path / "part.parquet")
    for columns in ([], names):
        (batch,) = file_reader.read_rows(str(tmp_path), columns, 0, 1)
        assert batch.to_pylist() == table.to_pylist()


def read_pinned(source, rank, world):
    batches = RankRows(source).read(rank, world)
    return [value for batch in batches for value in batch.column("id").to_pylist()]


def test_pinned_files_exclude_files_added_later(tmp_path):
    ids = write(tmp_path, [20, 7, 13])
    source = pickle.loads(pickle.dumps(data.parquet(str(tmp_path)).pin()))
    write(tmp_path / "..", [5])
    (tmp_path / ".." / "part-000.parquet").rename(tmp_path / "part-0000.parquet")
    assert [id_ for rank in range(3) for id_ in read_pinned(source, rank, 3)] == ids


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda file: file.unlink(), "is missing"),
        (lambda file: file.write_bytes(file.read_bytes() + b"x"), r"has \d+ bytes instead of \d+"),
    ],
)
def test_a_changed_pinned_file_is_named_with_a_remedy(tmp_path, change, said):
    write(tmp_path, [20, 7, 13])
    source = data.parquet(str(tmp_path)).pin()
    change(tmp_path / "part-001.parquet")
    assert read_pinned(source, 0, 4) == list(range(10))  # this rank does not read the changed file
    with pytest.raises(ValueError, match=rf"part-001.parquet {said}.* from host .*start the run"):
        read_pinned(source, 2, 4)


def test_a_pinned_file_of_equal_size_with_other_rows_is_named(tmp_path):
    write(tmp_path, [7])
    source = data.parquet(str(tmp_path)).pin()
    eight = Split(0, 100, 8, pieces=(Piece(0, 0, 8),))  # as if the driver had counted 8 rows
    with pytest.raises(ValueError, match=r"part-000.parquet .* has 7 rows instead of 8"):
        list(source.read(eight))
    six = Split(0, 100, 6, pieces=(Piece(0, 0, 6),))
    with pytest.raises(ValueError, match=r"part-000.parquet .* has more than 6 rows"):
        list(source.read(six))


def run_as_program(*arguments):
    """Runs the module as `hearth train` does; returns (ids read from the ring, error)."""
    from hearth.native._core import RingReader

    ring = RingReader()
    fds = ring.fds()
    command = [sys.executable, "-m", "hearth.rows.file_reader", *arguments]
    command += ["--ring-fd", str(fds[0]), "--signal-fd", str(fds[1])]
    process = subprocess.Popen(command, pass_fds=fds)
    ring.close_child_fds()
    ids = []
    try:
        while (entry := ring.next(30))[0] == "batch":
            ids += pa.record_batch(entry[1]).column(0).to_pylist()
    except Exception as error:
        return ids, str(error)
    finally:
        process.wait(30)
    return ids, None


def test_the_program_feeds_a_ring(tmp_path):
    ids = write(tmp_path, [20])
    arguments = ["--source", str(tmp_path), "--columns", "id", "--rank", "1", "--world", "2"]
    assert run_as_program(*arguments) == (ids[10:], None)


def test_the_programs_failure_reaches_the_ring(tmp_path):
    arguments = ["--source", str(tmp_path / "none"), "--rank", "0", "--world", "1"]
    ids, error = run_as_program(*arguments)
    assert ids == []
    assert "none does not exist" in error


def test_the_program_ends_when_no_more_rows_are_needed(tmp_path, monkeypatch):
    write(tmp_path, [20, 20, 20])
    written = []

    class Full:
        @staticmethod
        def attach(*_):
            return Full()

        def write(self, batch, timeout_s):
            written.append(batch.num_rows)
            return False

    monkeypatch.setattr("hearth.native._core.RingWriter", Full)
    arguments = ["--source", str(tmp_path), "--rank", "0", "--world", "1"]
    assert file_reader.main([*arguments, "--ring-fd", "0", "--signal-fd", "0"]) == 0
    assert len(written) == 1  # it stopped after one batch
