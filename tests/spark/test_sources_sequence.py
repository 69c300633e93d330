"""SequenceFiles of images as the source of a fed layer, with keys serialized by Java."""

import pytest
from hearth.native._core import image_key
from source_nets import SourceNet, check_content, digit_rows

from hearth.caffeonspark import CaffeOnSpark, DataSource, FlagError
from hearth.caffeonspark.sequence_file import sequence_frame

KIND = "com.yahoo.ml.caffe.SeqImageDataSource"
ROWS = 60


def serialized(spark, value):
    """The value's bytes as written by Java's ObjectOutputStream."""
    jvm = spark._jvm
    stream = jvm.java.io.ByteArrayOutputStream()
    writer = jvm.java.io.ObjectOutputStream(stream)
    writer.writeObject(value)
    writer.flush()
    return bytes(stream.toByteArray())


def java_key(spark, row, form):
    jvm = spark._jvm
    if form == "pair":  # imitates CaffeOnSpark's Pair class, which is not available
        key = serialized(spark, jvm.scala.Tuple2(row["id"], str(row["label"])))
        return (
            key.replace(b"scala.Tuple2", b"com.own.Pair")
            .replace(b"\x00\x02_1", b"\x00\x05first")
            .replace(b"\x00\x02_2", b"\x00\x06second")
        )
    if form == "two":
        return serialized(spark, jvm.scala.Tuple2(row["id"], str(row["label"])))
    numbers = (row["id"], str(row["label"]), 1, 28, 28, False)
    return serialized(spark, jvm.scala.Tuple6(*numbers))


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    return SourceNet(tmp_path_factory.mktemp("sequence"))


@pytest.fixture(scope="module")
def rows(digits):
    return digit_rows(digits, ROWS)


def write(spark, path, records):
    pairs = spark.sparkContext.parallelize(
        [(bytearray(key), bytearray(value)) for key, value in records], 3
    )
    pairs.saveAsSequenceFile(str(path))
    return f"file:{path}"


@pytest.fixture(scope="module")
def trained(spark, net, rows):
    records = [(java_key(spark, row, "six"), row["image"]) for row in rows]
    source = write(spark, net.folder / "digits_seq", records)
    conf = net.config(spark, KIND, source)
    CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))
    return conf


def test_a17_a_sequence_file_trains_and_its_images_are_read(spark, rows, trained):
    features = CaffeOnSpark(spark).features(DataSource(spark).getSource(trained, False))
    check_content(features, rows)


def test_all_forms_of_keys_are_read(spark, rows):
    for row in rows[:3]:
        texts = row["id"], str(row["label"])
        for form in ("two", "pair"):
            assert image_key(java_key(spark, row, form)) == (*texts, None, None, None, True)
        assert image_key(java_key(spark, row, "six")) == (*texts, 1, 28, 28, False)
    assert image_key(serialized(spark, spark._jvm.java.util.Date())) is None


def test_modified_utf8_of_java_is_read(spark):
    odd = "zero \0, rocket \U0001f680, ä"
    assert image_key(serialized(spark, spark._jvm.scala.Tuple2(odd, odd)))[:2] == (odd, odd)


def test_a_record_with_an_invalid_key_is_an_invalid_row(spark, net, rows, trained):
    records = [(java_key(spark, row, "six"), row["image"]) for row in rows[:10]]
    records += [(b"\x00\x01", rows[0]["image"])]
    records += [(java_key(spark, {"id": "bad-short", "label": 1}, "six"), b"short")]
    source = write(spark, net.folder / "spoiled_seq", records)
    conf = net.config(spark, KIND, source, model=trained.modelPath, features="data,label")
    conf.maxBadRecords = "2"
    events = []
    features = CaffeOnSpark(spark, events.append).features(DataSource(spark).getSource(conf, False))
    check_content(features, rows[:10])
    assert "2 of 12 rows cannot be used" in events[0]["text"]
    assert "bad-short" in events[0]["text"]


def test_numbers_in_a_key_are_unchanged(spark, net, rows):
    tuple6 = spark._jvm.scala.Tuple6
    number = spark._jvm.java.lang.Long
    keys = [
        serialized(spark, tuple6("one", "3", 1, 28, 28, 1)),
        serialized(spark, tuple6("large", "3", number(2**32 + 1), 28, 28, False)),
    ]
    source = write(spark, net.folder / "numbers_seq", [(key, b"x" * 784) for key in keys])
    found = {row.id: row for row in sequence_frame(spark, source, 1).collect()}
    assert found["one"].encoded is True
    assert "large" not in found
    assert sorted(row.channels is None for row in found.values()) == [False, True]


@pytest.mark.parametrize("key", ["a text", 10**15])
def test_a_sequence_file_of_other_types_is_a_one_line_error(spark, net, key):
    path = net.folder / f"other_{type(key).__name__}_seq"
    spark.sparkContext.parallelize([(key, bytearray(b"x"))]).saveAsSequenceFile(str(path))
    with pytest.raises(Exception, match=f"other_.*_seq has keys or values .* {type(key).__name__}"):
        sequence_frame(spark, f"file:{path}", 1).collect()


def test_partitions_and_compressed_rows_of_40_kb(spark, net):
    records = [
        (java_key(spark, {"id": f"{i:02d}", "label": i}, "two"), bytes([i]) * 40_000)
        for i in range(40)
    ]
    path = net.folder / "large_seq"
    pairs = spark.sparkContext.parallelize([(bytearray(k), bytearray(v)) for k, v in records], 4)
    pairs.saveAsSequenceFile(str(path), "org.apache.hadoop.io.compress.DefaultCodec")
    frame = sequence_frame(spark, f"file:{path}", 16)
    found = {row.id: (row.label, bytes(row.data), row.encoded) for row in frame.collect()}
    assert found == {f"{i:02d}": (str(i), bytes([i]) * 40_000, True) for i in range(40)}


def test_an_invalid_sequence_file_is_a_one_line_error(spark, net):
    (net.folder / "text_seq").write_text("no SequenceFile")
    for name, said in (("gone", "gone"), ("text_seq", "not a SequenceFile")):
        conf = net.config(spark, KIND, f"file:{net.folder / name}")
        with pytest.raises(
            FlagError, match=f"cannot be read as a SequenceFile: .*{said}"
        ) as caught:
            CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))
        assert "\n" not in str(caught.value)
