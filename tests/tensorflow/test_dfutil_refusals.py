"""Input that saveAsTFRecords and loadTFRecords refuse: incomplete folders, doubles, equal names."""

import time

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.fs import FileSystemHandler, PyFileSystem

from tensorflowonspark import dfutil


def test_a_job_that_fails_late_leaves_no_part(spark, tmp_path):
    def fails_in_the_second(batches):
        from pyspark import TaskContext

        yield from batches
        if TaskContext.get().partitionId() == 1:
            while not list((tmp_path / "rows").rglob("part-r-00000")):
                time.sleep(0.01)
            raise OSError("a disk is gone")

    rows = spark.range(0, 1000, 1, 2)
    with pytest.raises(Exception, match="a disk is gone"):
        dfutil.saveAsTFRecords(
            rows.mapInArrow(fails_in_the_second, rows.schema), str(tmp_path / "rows")
        )
    assert list((tmp_path / "rows").iterdir()) == []
    dfutil.saveAsTFRecords(rows, str(tmp_path / "rows"))  # the same folder works now
    assert dfutil.loadTFRecords(spark, str(tmp_path / "rows")).count() == 1000


class WithoutFolders(FileSystemHandler):
    """Like an object store: a folder exists only while it contains files."""

    def __init__(self, files):
        self.files = files

    def move(self, source, target):
        self.files[target] = self.files.pop(source)

    def open_output_stream(self, path, metadata):
        self.files[path] = b""
        return pa.BufferOutputStream()

    def delete_dir(self, path):
        if not any(name.startswith(path) for name in self.files):
            raise FileNotFoundError(path)

    def delete_file(self, path):
        del self.files[path]

    def _none(self, *_, **__):
        raise NotImplementedError

    copy_file = create_dir = delete_dir_contents = delete_root_dir_contents = _none
    get_file_info = get_file_info_selector = get_type_name = normalize_path = _none
    open_append_stream = open_input_file = open_input_stream = _none


def test_a_store_without_folders_gets_the_parts_and_their_mark(monkeypatch):
    from hearth.files import tfrecord_files

    files = {"b/rows/_written-1/part-r-00000": b"", "b/rows/_schema.json": b""}
    system = PyFileSystem(WithoutFolders(files))
    monkeypatch.setattr(tfrecord_files, "file_system", lambda uri: (system, "b/rows/_written-1"))
    tfrecord_files.finish("s3a://b/rows/_written-1", ["part-r-00000"])
    assert set(files) == {"b/rows/part-r-00000", "b/rows/_SUCCESS", "b/rows/_schema.json"}
    tfrecord_files.abandon("s3a://b/rows/_written-1")
    assert "b/rows/_schema.json" not in files


@pytest.mark.parametrize("scheme", ["", "local"])
def test_an_incomplete_folder_is_refused(spark, tmp_path, scheme):
    from hearth.files import tfrecord_files

    folder = str(tmp_path / "rows")
    dfutil.saveAsTFRecords(spark.range(5), folder)
    (tmp_path / "rows" / "_SUCCESS").unlink()
    with pytest.raises(ValueError, match=r"rows is incomplete: .* \(it has no _SUCCESS\)"):
        if scheme:
            tfrecord_files.left_schema(folder)
        else:
            dfutil.loadTFRecords(spark, folder)


def test_doubles_are_rounded_on_request(spark, tmp_path):
    frame = spark.createDataFrame([(1.1, [0.1])], "x double, y array<double>").coalesce(1)
    for name in ("x", "y"):
        with pytest.raises(
            ValueError, match=rf"column '{name}' \(\S*double>?\): a tf.train.Example"
        ):
            dfutil.saveAsTFRecords(frame.select(name), str(tmp_path / "rows"))
    dfutil.saveAsTFRecords(frame, str(tmp_path / "rows"), round_doubles=True)
    (row,) = dfutil.loadTFRecords(spark, str(tmp_path / "rows")).collect()
    assert (row.x, row.y) == (float(np.float32(1.1)), [float(np.float32(0.1))])
    huge = spark.createDataFrame([([1.0],), ([1e300],)], "x array<double>")
    with pytest.raises(
        Exception, match=r"column 'x' has the value 1e\+300, which does not fit float32"
    ):
        dfutil.saveAsTFRecords(huge, str(tmp_path / "huge"), round_doubles=True)


def test_columns_of_any_names_are_features(spark, tmp_path):
    frame = spark.createDataFrame([(1, 2, 3)], "a int, b int, c int").toDF("a.b", "x`y", "X")
    dfutil.saveAsTFRecords(frame, str(tmp_path / "rows"))
    back = dfutil.loadTFRecords(spark, str(tmp_path / "rows"))
    assert (back.columns, [tuple(row) for row in back.collect()]) == (frame.columns, [(1, 2, 3)])
    with pytest.raises(
        ValueError, match="several columns are called 'a', but an example holds one"
    ):
        dfutil.saveAsTFRecords(frame.toDF("a", "a", "b"), str(tmp_path / "two"))
    with pytest.raises(ValueError, match="the DataFrame has no columns"):
        dfutil.saveAsTFRecords(frame.select(), str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
