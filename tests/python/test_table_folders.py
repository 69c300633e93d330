"""Folders of Delta, Iceberg and Hudi tables and of streams are not read as plain files."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hearth import data
from hearth.cluster.node.file_feed import FileFeed
from hearth.files.table_folders import find_table
from hearth.rows.file_reader import read_rows

TABLE = pa.table({"id": pa.array(range(5), pa.int64())})
# Another file in the folder, and a data file.
LAYOUTS = {
    "delta": ("_delta_log/00000000000000000000.json", "part-0.parquet"),
    "hudi": (".hoodie/hoodie.properties", "part-0.parquet"),
    "iceberg": ("metadata/00000-1f2e.metadata.json", "data/part-0.parquet"),
    "": ("_spark_metadata/0", "part-0.parquet"),
}


def write(folder, *names):
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".parquet"):
            pq.write_table(TABLE, file)
        else:
            file.write_text("{}")


@pytest.fixture(params=LAYOUTS)
def kind(request, tmp_path):
    write(tmp_path, *LAYOUTS[request.param])
    return request.param


READERS = {
    "a file feed": lambda uri: FileFeed(uri, (), (0, 1), 1),
    "the driver of a run": lambda uri: data.parquet(uri).pin(),
    "hearth train": lambda uri: list(read_rows(uri, (), 0, 1)),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_every_local_reader_refuses_them(read, kind, tmp_path):
    owner = "streaming query" if not kind else f"{kind.capitalize()} table"
    how = rf'format\("{kind}"\)\.load\("{tmp_path}"\)' if kind else rf'load\("{tmp_path}"\)'
    with pytest.raises(ValueError, match=rf"{tmp_path} belongs to the .*{owner}.*read\.{how}"):
        read(str(tmp_path))
    with pytest.raises(ValueError, match=rf"belongs to the .*{owner}"):
        read(f"file:{tmp_path / LAYOUTS[kind][1]}")


@pytest.mark.parametrize("scheme", ["file", "local"])  # read by the core and by fsspec
def test_the_driver_refuses_them_in_other_file_systems(kind, scheme, tmp_path):
    with pytest.raises(ValueError, match="belongs to the"):
        data.parquet(f"{scheme}://{tmp_path}").pin(object())


def test_partitions_of_tables_are_refused(tmp_path):
    write(tmp_path, "_delta_log/0.json", "day=1/hour=2/part-0.parquet")
    for inside in ("day=1/hour=2", "day=1", "day=1/hour=2/part-0.parquet"):
        assert find_table(str(tmp_path / inside)).root == str(tmp_path)
    with pytest.raises(ValueError, match="Delta table"):
        data.parquet(str(tmp_path / "day=1")).pin()


def test_other_folders_are_read(tmp_path):
    write(tmp_path, "rows/part-0.parquet", "metadata/columns.json", "data/part-0.parquet")
    write(tmp_path, "other/_delta_log/0.json")
    for folder in ("rows", "data", "rows/part-0.parquet"):
        uri = str(tmp_path / folder)
        assert sum(batch.num_rows for batch in read_rows(uri, (), 0, 1)) == len(TABLE)
        assert data.parquet(f"local://{uri}").pin(object()).splits()


@pytest.mark.parametrize("error", [ConnectionError, TimeoutError])
def test_a_file_system_that_does_not_answer_is_asked_once(error):
    """The core retries each request itself; the reader of the files then reports the failure."""
    asked = []

    class Down:
        def exists(self, uri):
            asked.append(uri)
            raise error(uri)

        names = exists

    assert find_table("hdfs://down/rows/day=1", Down()) is None
    assert asked == ["hdfs://down/rows/day=1/_delta_log"]
