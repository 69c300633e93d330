"""The core's storage as pyarrow file systems: on this host, and over HTTP."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hearth.native._core import TfRecordWriter
from pyarrow.fs import FileSelector, FileType, PyFileSystem
from webhdfs_server import WebHdfs, refusal

from hearth import HearthError
from hearth.caffeonspark.tools import parts
from hearth.files import tfrecord_files
from hearth.files.arrow_files import CoreHandler, arrow_file_system


@pytest.fixture
def hdfs():
    with WebHdfs() as server:
        yield server


def test_only_hadoops_schemes_have_this_file_system():
    for uri in ("hdfs://a/b", "viewfs://a/b", "webhdfs://a/b", "swebhdfs://a/b"):
        assert arrow_file_system(uri) == PyFileSystem(CoreHandler())
    for uri in ("/a", "file:///a", "s3://a/b"):
        assert arrow_file_system(uri) is None


def test_it_implements_pyarrows_file_system(tmp_path):
    files, folder = PyFileSystem(CoreHandler()), str(tmp_path / "a" / "b")
    files.create_dir(folder)
    with files.open_output_stream(f"{folder}/x") as file:
        file.write(b"0123456789")
    with files.open_input_file(f"{folder}/x") as file:
        file.seek(4)
        assert (file.read(3), file.read(), file.size()) == (b"456", b"789", 10)
    files.copy_file(f"{folder}/x", f"{folder}/y")
    files.move(f"{folder}/y", f"{folder}/z")
    there, gone, above = files.get_file_info([f"{folder}/z", f"{folder}/y", folder])
    assert (there.type, there.size, gone.type) == (FileType.File, 10, FileType.NotFound)
    assert above.type == FileType.Directory
    found = files.get_file_info(FileSelector(str(tmp_path), recursive=True))
    assert [info.base_name for info in found] == ["a", "b", "x", "z"]
    files.delete_file(f"{folder}/z")
    with pytest.raises(FileNotFoundError):
        files.delete_file(f"{folder}/z")
    files.delete_dir_contents(folder)
    assert files.get_file_info(FileSelector(folder)) == []
    files.delete_dir(str(tmp_path / "a"))
    assert files.get_file_info(FileSelector(folder, allow_not_found=True)) == []


def test_parquet_is_written_and_read_over_http(hdfs):
    table = pa.table({"x": list(range(1000))})
    pq.write_table(table, f"{hdfs.uri}/t.parquet", filesystem=arrow_file_system(hdfs.uri))
    assert hdfs.files["/t.parquet"][:4] == b"PAR1"
    system = arrow_file_system(hdfs.uri)
    assert pq.read_table(f"{hdfs.uri}/t.parquet", filesystem=system) == table


def test_a_partition_is_written_over_http_once(hdfs):
    folder = f"{hdfs.uri}/rows"
    for attempt, values in ((7, [1, 2, 3]), (8, [9])):
        with tfrecord_files.new_file(folder, 0, attempt) as file:
            file.write(pa.record_batch({"x": values}))
    assert list(hdfs.files) == ["/rows/part-r-00000"]
    reader = tfrecord_files.open_records(hdfs.files["/rows/part-r-00000"], "part")
    assert len(reader.scan(9)) == 3


def test_a_failed_attempt_leaves_no_files(hdfs):
    with pytest.raises(KeyError), tfrecord_files.new_file(f"{hdfs.uri}/rows", 0, 7):
        raise KeyError("of the rows")
    assert hdfs.files == {}


def test_a_partition_is_kept_on_this_host_once_alone(hdfs, monkeypatch):
    monkeypatch.setattr("tempfile.NamedTemporaryFile", None)  # the core uses an unnamed file
    with tfrecord_files.new_file(f"{hdfs.uri}/rows", 0, 7) as file:
        file.write(pa.record_batch({"x": list(range(100_000))}))
        assert list(hdfs.files.values()) == [b""]  # a refused writer has raised its error by now
        (hidden,) = hdfs.files
    assert hidden.startswith("/rows/.part-r-00000.")
    assert [asked for asked in hdfs.asked if "part" in asked and not asked.startswith("GET")] == [
        f"CREATE {hidden}", f"CREATE {hidden}", f"RENAME {hidden}"
    ]  # fmt: skip
    reader = tfrecord_files.open_records(hdfs.files["/rows/part-r-00000"], "part")
    assert len(reader.scan(1_000_000)) == 100_000


def test_a_refused_upload_leaves_no_file(hdfs):
    batch = pa.record_batch({"x": [1, 2, 3]})
    quota = (403, refusal("DSQuotaExceededException"))
    said = pytest.raises((HearthError, OSError), match=r"/rows/\.part-r-00000.*quota")
    with said, tfrecord_files.new_file(f"{hdfs.uri}/rows", 0, 7) as file:
        file.write(batch)
        hdfs.before = lambda operation, path: quota if operation == "CREATE" else NotImplemented
    assert hdfs.files == {}


def test_a_writer_that_has_ended_takes_no_more(hdfs):
    batch = pa.record_batch({"x": [1, 2, 3]})
    for end in (TfRecordWriter.finish, TfRecordWriter.discard):
        writer = TfRecordWriter(f"{hdfs.uri}/rows/part-r-00000", gzip=True)
        writer.write(batch)
        end(writer)
        with pytest.raises(ValueError, match="already committed or discarded"):
            writer.write(batch)
    reader = tfrecord_files.open_records(hdfs.files["/rows/part-r-00000"], "part")
    assert len(reader.scan(9)) == 3  # of the first file


def test_files_of_killed_attempts_are_removed(hdfs):
    left = {"/rows/_part-00000.7": b"half", "/rows/part-00001": b"whole"}
    parts.write_folder(f"{hdfs.uri}/rows", lambda: hdfs.files.update(left))
    assert sorted(hdfs.files) == ["/rows/_SUCCESS", "/rows/part-00001"]


def test_a_refusal_names_the_file(hdfs):
    hdfs.before = lambda operation, path: (403, refusal("AccessControlException"))
    with pytest.raises((HearthError, OSError), match="rows"):
        tfrecord_files.finish(f"{hdfs.uri}/rows/_writing", [])
