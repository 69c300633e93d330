"""CaffeOnSpark's tools: plain Spark and a layer's sources can read their output."""

import os
import random
import signal
import subprocess
import sys

import pytest
from lmdb_files import datum, write_lmdb
from pyspark import TaskContext
from test_sources_sequence import java_key, serialized

from hearth.caffeonspark import FlagError
from hearth.caffeonspark.flags import parse_flags
from hearth.caffeonspark.sequence_file import sequence_frame
from hearth.caffeonspark.tools import (
    Binary2DataFrame,
    Binary2Sequence,
    LMDB2DataFrame,
    LMDB2Sequence,
    parts,
    program,
)
from hearth.caffeonspark.tools.sequence_keys import datum_key, pair_key
from hearth.caffeonspark.tools.sequence_parts import write_sequence

IMAGES = {
    "a.jpg": b"first",
    "two words.jpg": b"second\0",
    "sub/c.png": b"",
    "d.jpg": b"x" * 40_000,
}


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for name, data in IMAGES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    lines = [f"{name} {label}" for label, name in enumerate(IMAGES)]
    (folder / "labels.txt").write_text("\n".join(lines) + "\n\n")
    with_ids = [f"{line} id{i}" for i, line in enumerate(lines)]
    (folder / "labels3.txt").write_text("\n".join(with_ids))
    return folder


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    draw = random.Random(7)
    records = {f"{i:08}": (draw.randbytes(12), draw.randrange(10)) for i in range(500)}
    folder = tmp_path_factory.mktemp("tools") / "lmdb"
    write_lmdb(folder, {key: datum(*row, (3, 2, 2)) for key, row in records.items()})
    return folder, records


def flags(**given):
    arguments = [f"-{flag}={value}" for flag, value in given.items()]
    return parse_flags(arguments, program.DEFAULTS)


def test_a20_images_become_a_sequence_file(spark, images, tmp_path):
    output = f"file:{tmp_path}/seq"
    given = {"imageRoot": images, "labelFile": f"file:{images}/labels.txt", "output": output}
    assert "4 images" in Binary2Sequence.convert(spark, flags(**given))
    rows = sequence_frame(spark, output, 2).collect()
    assert {row.id: bytes(row.data) for row in rows} == IMAGES
    assert {row.id: row.label for row in rows} == {name: str(i) for i, name in enumerate(IMAGES)}
    assert all(row.encoded for row in rows)
    with pytest.raises(FlagError, match=f"-output {output} already exists"):
        Binary2Sequence.convert(spark, flags(**given))


def test_a20_images_become_a_dataframe(spark, images, tmp_path):
    output = f"file:{tmp_path}/frame"
    given = {"imageRoot": images, "labelFile": f"file:{images}/labels3.txt", "output": output}
    assert "4 images" in Binary2DataFrame.convert(spark, flags(**given))
    frame = spark.read.parquet(output)
    assert frame.dtypes == [("SampleID", "string"), ("label", "int"), ("data", "binary")]
    rows = {row.SampleID: (row.label, bytes(row.data)) for row in frame.collect()}
    assert rows == {f"id{i}": (i, data) for i, data in enumerate(IMAGES.values())}


def test_labels_and_names_are_parsed_like_spark_does(spark, images, tmp_path):
    (tmp_path / "labels").write_text("a.jpg +1 x\nd.jpg -1 y\n")
    given = {"imageRoot": images, "labelFile": f"file:{tmp_path}/labels"}
    key = "spark.sql.execution.arrow.useLargeVarTypes"
    spark.conf.set(key, "true")
    try:
        Binary2DataFrame.convert(spark, flags(**given, output=f"file:{tmp_path}/out"))
    finally:
        spark.conf.unset(key)
    rows = spark.read.parquet(f"file:{tmp_path}/out").collect()
    assert {row.SampleID: row.label for row in rows} == {"x": 1, "y": -1}


def test_a_folder_with_files_is_refused_and_keeps_them(tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("mine")

    def fails():
        raise AssertionError("the folder was taken")

    with pytest.raises(FlagError, match="already has files"):
        parts.write_folder(str(tmp_path), fails)
    assert kept.read_text() == "mine"


def test_a20_an_lmdb_becomes_a_dataframe(spark, database, tmp_path):
    folder, records = database
    output = f"file:{tmp_path}/frame"
    LMDB2DataFrame.convert(spark, flags(imageRoot=folder, output=output, lmdb_partitions=3))
    frame = spark.read.parquet(output)
    assert [name for name, kind in frame.dtypes if kind == "string"] == ["id", "label"]
    rows = {row.id: (bytes(row.data), int(row.label)) for row in frame.collect()}
    assert rows == records
    sizes = frame.select("channels", "height", "width", "encoded").distinct().collect()
    assert [tuple(row) for row in sizes] == [(3, 2, 2, False)]


def test_a20_an_lmdb_becomes_a_sequence_file(spark, database, tmp_path):
    folder, records = database
    output = f"file:{tmp_path}/seq"
    LMDB2Sequence.convert(spark, flags(imageRoot=f"file:{folder}", output=output))
    rows = sequence_frame(spark, output, 2).collect()
    assert {row.id: (bytes(row.data), int(row.label)) for row in rows} == records
    sizes = {(row.channels, row.height, row.width, row.encoded) for row in rows}
    assert sizes == {(3, 2, 2, False)}


@pytest.mark.parametrize("identifier", ["00000007", "", "zero \0, rocket \U0001f680, ä"])
def test_keys_are_those_that_java_itself_writes(spark, identifier):
    row = {"id": identifier, "label": 3}
    assert pair_key(identifier, "3") == java_key(spark, row, "two")
    numbers = (identifier, "-1", 3, 227, 2**31 - 1, True)
    assert datum_key(*numbers) == serialized(spark, spark._jvm.scala.Tuple6(*numbers))
    same = (identifier, "3", 28, 28, 28, False)  # Java itself would write 28 once, then refer to it
    stream = spark._jvm.java.io.ByteArrayInputStream(bytearray(datum_key(*same)))
    read = spark._jvm.java.io.ObjectInputStream(stream).readObject()
    assert read.equals(spark._jvm.scala.Tuple6(*same))


def test_a_text_too_long_for_a_key_is_an_error():
    with pytest.raises(ValueError, match="too long for a key: 65536 bytes"):
        pair_key("x" * 65536, "1")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("a.jpg\n", r"has a line that is not 'NAME LABEL ID': 'a.jpg'"),
        ("\n \n", "is empty"),
        ("a.jpg seven x\n", "the label of a.jpg is not a number: seven"),
    ],
)
def test_invalid_label_files_are_refused(spark, images, tmp_path, lines, said):
    (tmp_path / "labels").write_text(lines)
    given = {"imageRoot": images, "labelFile": f"file:{tmp_path}/labels"}
    with pytest.raises(FlagError, match=said):
        Binary2DataFrame.convert(spark, flags(**given, output=f"file:{tmp_path}/out"))
    assert not (tmp_path / "out").exists()


def test_a_missing_image_is_named_and_no_data_is_left(spark, images, tmp_path):
    (tmp_path / "labels").write_text("a.jpg 1 x\nnone.jpg 2 y\n")
    given = {"imageRoot": images, "labelFile": f"file:{tmp_path}/labels"}
    with pytest.raises(Exception, match=r"none.jpg cannot be read on host \S+: "):
        Binary2DataFrame.convert(spark, flags(**given, output=f"file:{tmp_path}/out"))
    assert not list((tmp_path / "out").glob("part-*"))


def test_a_file_that_is_not_an_lmdb_is_refused(spark, tmp_path):
    with pytest.raises(FlagError, match="cannot be read as an LMDB: "):
        LMDB2DataFrame.convert(spark, flags(imageRoot=tmp_path, output=f"file:{tmp_path}/out"))
    with pytest.raises(FlagError, match="must be on a path that all hosts see"):
        LMDB2Sequence.convert(spark, flags(imageRoot="hdfs:///x", output=f"file:{tmp_path}/out"))


def test_tools_run_as_programs(database, tmp_path):
    folder, records = database
    command = [sys.executable, "-m", "hearth.cli", "LMDB2DataFrame"]
    given = ["--master", "local[1]", "-imageRoot", str(folder), "-output", f"file:{tmp_path}/out"]
    done = subprocess.run([*command, *given], capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert f"LMDB2DataFrame: {len(records)} records written to file:{tmp_path}/out" in done.stderr
    assert list((tmp_path / "out").glob("part-*.parquet"))


def test_a_tool_reports_missing_arguments_in_one_line(capsys):
    needed = ("imageRoot", "output")
    assert program.main("Tool", lambda *_: "", needed, ["-imageRoot=x"]) == 1
    assert capsys.readouterr().err == "Tool: -output is missing\n"
    assert program.main("Tool", lambda *_: "", needed, ["-imageRot=x"]) == 1
    assert "-imageRot" in capsys.readouterr().err
    assert program.main("Tool", lambda *_: "", needed, ["-help"]) == 0
    assert "Usage: Tool -imageRoot X -output X" in capsys.readouterr().out


def test_a_sequence_file_is_split_at_its_marks_and_a_failed_write_leaves_no_file(spark, tmp_path):
    records = [(b"key %04d" % i, bytes([i % 256]) * (i * 37 % 3000)) for i in range(2000)]
    output = f"file:{tmp_path}/seq"
    write_sequence(spark, spark.sparkContext.parallelize(records, 2), output)
    files = sorted(path.name for path in (tmp_path / "seq").iterdir())
    assert files == ["_SUCCESS", "part-00000", "part-00001"]
    read = spark.sparkContext.sequenceFile(output, minSplits=9)
    assert read.getNumPartitions() >= 9
    found = [(bytes(key), bytes(value)) for key, value in read.collect()]
    assert sorted(found) == records

    def fails(part, rows):
        yield from rows
        if part == 1:
            raise ValueError("no more of them")

    def is_killed(part, rows):
        yield from rows
        if part == 1 and TaskContext.get().attemptNumber() == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    again = spark.sparkContext.parallelize(records, 2).mapPartitionsWithIndex(is_killed)
    write_sequence(spark, again, f"file:{tmp_path}/again")
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == files

    broken = spark.sparkContext.parallelize(records, 2).mapPartitionsWithIndex(fails)
    with pytest.raises(Exception, match="no more of them"):
        write_sequence(spark, broken, f"file:{tmp_path}/broken")
    assert not (tmp_path / "broken").exists()
