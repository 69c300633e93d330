"""DataFrames as TFRecord files: types, nulls, files that TensorFlow wrote, damaged files."""

import base64
import itertools
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from tensorflowonspark import dfutil

X, Y = bytearray(b"\x00\xff"), bytearray(b"z")
ROWS = [
    ("a", 1, 2, True, [1, 2, 3], 1.5, [0.5, 1.5], X, ["x", "yy"], [Y]),
    (None, None, None, None, None, None, None, None, None, None),
    ("", -1, 2**40, False, [], -0.25, [3.0], bytearray(b""), [""], []),
]
SCHEMA = (
    "s string, i int, l long, b boolean, il array<int>, f float, dl array<double>, bin binary, "
    "sl array<string>, bl array<binary>"
)


def test_rows_of_every_type_round_trip(spark, tmp_path):
    frame = spark.createDataFrame(ROWS, SCHEMA)
    dfutil.saveAsTFRecords(frame, str(tmp_path / "rows"), round_doubles=True)
    back = dfutil.loadTFRecords(spark.sparkContext, str(tmp_path / "rows"))
    assert back.schema == frame.schema
    assert sorted(map(repr, back.collect())) == sorted(map(repr, frame.collect()))
    assert dfutil.isLoadedDF(back)
    assert not dfutil.isLoadedDF(frame)
    assert not dfutil.isLoadedDF(back.select("s"))


def test_tensorflow_reads_the_files_and_its_own_files_are_read(spark, tmp_path):
    tf = pytest.importorskip("tensorflow")
    frame = spark.createDataFrame([(7, [1.0, 2.0], "x")], "n int, x array<float>, s string")
    dfutil.saveAsTFRecords(frame.coalesce(1), str(tmp_path / "ours"))
    data = tf.data.TFRecordDataset([str(tmp_path / "ours" / "part-r-00000")])
    features = {
        "n": tf.io.FixedLenFeature([], tf.int64),
        "x": tf.io.FixedLenFeature([2], tf.float32),
        "s": tf.io.FixedLenFeature([], tf.string),
    }
    (row,) = [tf.io.parse_single_example(record, features) for record in data]
    assert (int(row["n"]), row["x"].numpy().tolist(), bytes(row["s"].numpy())) == (7, [1, 2], b"x")

    encode = dfutil.toTFExample(
        [("n", "int"), ("x", "array<float>"), ("b", "binary"), ("s", "string")]
    )
    rows = [{"n": i, "x": [0.5] * (i + 1), "b": b"\xff", "s": "t"} for i in range(3)]
    examples = [bytes(example) for example, _ in encode(rows)]
    (tmp_path / "theirs").mkdir()
    for name, packed in (("plain", None), ("packed.gz", "GZIP")):
        with tf.io.TFRecordWriter(str(tmp_path / "theirs" / name), packed) as writer:
            for example in examples:
                writer.write(example)
    loaded = dfutil.loadTFRecords(spark.sparkContext, str(tmp_path / "theirs"), ["b"])
    assert loaded.dtypes == [
        ("b", "binary"),
        ("n", "bigint"),
        ("s", "string"),
        ("x", "array<double>"),
    ]
    assert sorted(row.n for row in loaded.collect()) == [0, 0, 1, 1, 2, 2]
    assert {(row.n, len(row.x)) for row in loaded.collect()} == {(0, 1), (1, 2), (2, 3)}
    example = tf.train.Example.FromString(examples[1])
    assert dfutil.infer_schema(example, ["b"]) == loaded.schema
    (row,) = dfutil.fromTFExample([(examples[1], None)], ["b"])
    assert row.asDict() == {"b": b"\xff", "n": 1, "s": "t", "x": [0.5, 0.5]}


def test_spark_still_reads_the_files(spark, tmp_path):
    dfutil.saveAsTFRecords(spark.range(5), str(tmp_path / "rows"))
    files = spark.read.format("binaryFile").load(str(tmp_path / "rows"))
    assert files.count() == len([f for f in os.listdir(tmp_path / "rows") if f[0] == "p"])


def test_a_type_that_examples_cannot_hold_is_named(spark, tmp_path):
    frame = spark.sql("select map('a', 1) as m")
    with pytest.raises(ValueError, match="column 'm': Unsupported dtype: map<string,int>"):
        dfutil.saveAsTFRecords(frame, str(tmp_path / "rows"))


def test_the_attempt_that_ends_first_writes_the_file(tmp_path):
    from hearth.native._core import TfRecordReader

    from hearth.files import tfrecord_files

    for folder in (str(tmp_path), f"local://{tmp_path}"):
        first = tfrecord_files.new_file(folder, 3, 70)
        second = tfrecord_files.new_file(folder, 3, 71)
        with first as one:
            one.write(pa.record_batch({"n": [1]}))
            with second as other:
                other.write(pa.record_batch({"n": [2, 2]}))
        name = tmp_path / "part-r-00003"
        assert TfRecordReader(str(name)).read([("n", "int64")], 9)[1]["n"]["values"].tolist() == [
            2,
            2,
        ]
        assert [file.name for file in tmp_path.iterdir()] == ["part-r-00003"]
        name.unlink()


def test_attempts_that_run_at_once_write_separate_files(tmp_path, monkeypatch):
    import pyspark
    from hearth.native._core import TfRecordReader

    from hearth.tensorflowonspark import dfutil as writes

    def attempt(number, batches):
        context = SimpleNamespace(partitionId=lambda: 3, taskAttemptId=lambda: number)
        monkeypatch.setattr(pyspark.TaskContext, "get", staticmethod(lambda: context))
        return list(writes._write_partition(str(tmp_path), None, batches))

    def slow():
        yield pa.record_batch({"n": [1]})
        attempt(71, iter([pa.record_batch({"n": [2, 2]})]))
        yield pa.record_batch({"n": [1] * 9})

    attempt(70, slow())
    reader = TfRecordReader(str(tmp_path / "part-r-00003"))
    assert reader.read([("n", "int64")], 99)[1]["n"]["values"].tolist() == [2, 2]


def test_a_task_uses_the_forwarded_tokens_while_it_writes(tmp_path, monkeypatch):
    import pyspark

    from hearth.files.forwarded_tokens import VARIABLE, ForwardedTokens
    from hearth.tensorflowonspark import dfutil as writes

    context = SimpleNamespace(partitionId=lambda: 0, taskAttemptId=lambda: 1)
    monkeypatch.setattr(pyspark.TaskContext, "get", staticmethod(lambda: context))
    monkeypatch.delenv(VARIABLE, raising=False)
    seen = []

    def rows():
        seen.append(Path(os.environ[VARIABLE]).read_bytes())
        yield pa.record_batch({"n": [1]})

    tokens = ForwardedTokens(base64.b64encode(b"tokens").decode(), "", 0, 60.0, time.time())
    (written,) = writes._write_partition(str(tmp_path), tokens, rows())
    assert (written.to_pylist(), seen) == ([{"file": "part-r-00000"}], [b"tokens"])
    assert VARIABLE not in os.environ


def test_attempts_that_fail_leave_no_file(spark, tmp_path):
    def fails_once(batches):
        from pyspark import TaskContext

        attempt = TaskContext.get().attemptNumber()
        for batch in batches:
            yield batch
            if attempt == 0:
                raise OSError("a disk is gone")
            if attempt == 1:
                os.kill(os.getpid(), signal.SIGKILL)

    def fails(batches):
        yield from batches
        raise OSError("no disk is left")

    rows = spark.range(0, 1000, 1, 2)
    dfutil.saveAsTFRecords(rows.mapInArrow(fails_once, rows.schema), str(tmp_path / "rows"))
    names = sorted(file.name for file in (tmp_path / "rows").iterdir())
    assert names == ["_SUCCESS", "_schema.json", "part-r-00000", "part-r-00001"]
    back = dfutil.loadTFRecords(spark, str(tmp_path / "rows"))
    assert sorted(row.id for row in back.collect()) == list(range(1000))
    with pytest.raises(Exception, match="no disk is left"):
        dfutil.saveAsTFRecords(rows.mapInArrow(fails, rows.schema), str(tmp_path / "none"))
    assert list((tmp_path / "none").iterdir()) == []


def test_a_folder_with_files_is_not_touched(spark, tmp_path):
    (tmp_path / "precious").write_text("x")
    with pytest.raises(FileExistsError, match="already has files"):
        dfutil.saveAsTFRecords(spark.range(5), str(tmp_path))


def test_other_file_systems_are_written_and_read(spark, tmp_path):
    frame = spark.createDataFrame(ROWS, SCHEMA)
    # "local" is fsspec's name for local files, which otherwise have the scheme "file".
    dfutil.saveAsTFRecords(frame, f"local://{tmp_path}/rows", round_doubles=True)
    names = sorted(file.name for file in (tmp_path / "rows").iterdir())
    assert names[0].startswith("_SUCCESS")
    assert all(name.startswith(("part-r-", "_s", "_S")) for name in names)
    with pytest.raises(FileExistsError, match=r"local://.* already has files"):
        dfutil.saveAsTFRecords(frame, f"local://{tmp_path}/rows", round_doubles=True)
    # Hadoop's viewfs, a file system of links to others, must read the written files.
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.viewfs.mounttable.tests.link./data", tmp_path.as_uri())
    back = dfutil.loadTFRecords(spark.sparkContext, "viewfs://tests/data/rows")
    assert back.schema == frame.schema
    assert sorted(map(repr, back.collect())) == sorted(map(repr, frame.collect()))
    with pytest.raises(ValueError, match=r"nowhere://rows cannot be written: .* fsspec .*nowhere"):
        dfutil.saveAsTFRecords(frame, "nowhere://rows", round_doubles=True)


def test_a_damaged_file_names_the_record(spark, tmp_path):
    dfutil.saveAsTFRecords(spark.range(3).coalesce(1), str(tmp_path / "rows"))
    file = tmp_path / "rows" / "part-r-00000"
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)
    with pytest.raises(Exception, match=r"record 2 of \S+part-r-00000 has a wrong checksum"):
        dfutil.loadTFRecords(spark.sparkContext, str(tmp_path / "rows")).collect()


def test_a_batch_of_large_examples_is_bounded_by_bytes(tmp_path):
    from hearth.native._core import TfRecordReader, TfRecordWriter

    path = str(tmp_path / "images")
    images = [bytes([i]) * 1_500_000 for i in range(7)]
    writer = TfRecordWriter(path)
    writer.write(pa.record_batch({"image": images}))
    writer.finish()
    reader, found, sizes = TfRecordReader(path), [], []
    while (batch := reader.read([("image", "bytes")], 100)) is not None:
        sizes.append(batch[0])
        parts = batch[1]["image"]
        offsets = parts["value_offsets"].tolist()
        values = parts["values"].tobytes()
        found += [values[a:b] for a, b in itertools.pairwise(offsets)]
    assert sizes == [3, 3, 1]  # a batch ends at 4 MiB
    assert found == images


# Reads all records of argv[1]; prints their number and the process's growth in MiB.
READ = """
import resource, sys
from hearth.files.tfrecord_files import open_records
rss = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
open_records(sys.argv[2]).scan(1)  # loads all that is needed
before, reader, rows = rss(), open_records(sys.argv[1]), 0
try:
    while (found := reader.read([("x", "bytes")], 4096)) is not None:
        rows += found[0]
    print(rows, rss() - before)
except ValueError as error:
    print(error, rss() - before)
"""


def read_in_a_process(path, small, **environment):
    arguments = [sys.executable, "-c", READ, str(path), str(small)]
    done = subprocess.run(
        arguments, capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    result, _, grown = done.stdout.rpartition(" ")
    return result, int(grown)


def test_a_packed_file_takes_memory_for_a_record_and_not_for_its_content(tmp_path):
    import gzip

    from hearth.native._core import TfRecordWriter

    small, bomb = tmp_path / "small", tmp_path / "bomb.gz"
    for path, size in ((small, 3), (tmp_path / "large", 1 << 20)):
        writer = TfRecordWriter(str(path))
        writer.write(pa.record_batch({"x": [b"\0" * size]}))
        writer.finish()
    bomb.write_bytes(gzip.compress((tmp_path / "large").read_bytes()) * 400)  # 400 MB in 500 KB
    rows, grown = read_in_a_process(bomb, small)
    assert rows == "400"
    assert grown < 40


def test_a_record_of_gigabytes_in_a_small_file_is_an_error_that_names_its_offset(tmp_path):
    import gzip

    from hearth.native._core import TfRecordWriter

    small, bomb = tmp_path / "small", tmp_path / "bomb.gz"
    writer = TfRecordWriter(str(small))
    writer.write(pa.record_batch({"x": [b"abc"]}))
    writer.finish()
    head = struct.pack("<Q", 3 << 30) + struct.pack("<I", masked_crc(struct.pack("<Q", 3 << 30)))
    zeros = gzip.compress(b"\0" * (16 << 20))
    bomb.write_bytes(gzip.compress(small.read_bytes() + head) + zeros * 192)  # 3 MB
    error, grown = read_in_a_process(bomb, small)
    offset = small.stat().st_size
    where = f"at byte {offset} of the uncompressed data"
    assert f"record 1 of {bomb} has 3221225472 bytes, {where}" in error
    assert "HEARTH_MAX_RECORD_MB is too small" in error
    assert grown < 20


def test_more_values_than_a_column_can_hold_are_an_error():
    from pyspark.sql.types import ArrayType, LongType, StructField, StructType

    from hearth.files.tfrecord_schema import arrow_columns

    parts = {"values": np.zeros(2, np.int64), "present": np.ones(1), "row_offsets": None}
    parts["row_offsets"] = np.array([0, 2**32 + 2])  # a cast to 32 bits makes this 2
    schema = StructType([StructField("n", ArrayType(LongType()))])
    with pytest.raises(ValueError, match="feature 'n' has 4294967298 values in 1 examples: a col"):
        arrow_columns(schema, 1, {"n": parts})


def test_the_largest_record_is_the_users_choice(tmp_path, monkeypatch):
    from hearth.native._core import TfRecordWriter

    from hearth.files import tfrecord_files

    path = str(tmp_path / "rows")
    writer = TfRecordWriter(path)
    writer.write(pa.record_batch({"x": [b"x" * (3 << 19)]}))
    writer.finish()
    monkeypatch.setenv("HEARTH_MAX_RECORD_MB", "2")
    assert tfrecord_files.open_records(path).scan(9) == [[("x", "bytes", 1)]]
    monkeypatch.setenv("HEARTH_MAX_RECORD_MB", "1")
    with pytest.raises(ValueError, match=r"record 0 of .* exceeds the limit of 1048576"):
        tfrecord_files.open_records(path).scan(9)
    monkeypatch.setenv("HEARTH_MAX_RECORD_MB", "much")
    with pytest.raises(ValueError, match="HEARTH_MAX_RECORD_MB=much is not a number of MiB"):
        tfrecord_files.open_records(path)


def masked_crc(data):
    """The masked CRC-32C of a TFRecord file, for a few bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_a_batch_of_examples_becomes_columns_without_spark(tmp_path):
    from hearth.native._core import TfRecordReader, TfRecordWriter

    path = str(tmp_path / "rows")
    writer = TfRecordWriter(path, True)
    assert writer.write(pa.record_batch({"n": pa.array([1, None, 3])})) == 3
    writer.finish()
    rows, columns = TfRecordReader(path).read([("n", "int64"), ("none", "float")], 10)
    assert rows == 3
    assert columns["n"]["values"].tolist() == [1, 3]
    assert columns["n"]["present"].tolist() == [1, 0, 1]
    assert columns["none"]["row_offsets"].tolist() == [0, 0, 0, 0]
    with open(path, "rb") as file:
        assert TfRecordReader(file.read(), "name").scan(2) == [[("n", "int64", 1)], []]
    with pytest.raises(FileNotFoundError):
        TfRecordReader(str(tmp_path / "nothing"))
