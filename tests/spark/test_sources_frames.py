"""DataFrames as the source of a fed layer: column types, missing columns, custom sources."""

import io
import json
from pathlib import Path

import pytest
from deltalake import convert_to_deltalake
from PIL import Image
from source_nets import TOPS, SourceNet, check_content, digit_rows

from hearth import HearthError
from hearth.caffeonspark import CaffeOnSpark, DataSource, FlagError

IMAGES = "com.yahoo.ml.caffe.ImageDataFrame"
FRAMES = "com.yahoo.ml.caffe.DataFrameSource"
ROWS = 48


def signed(data):
    """The bytes as signed numbers, as in Spark's array<byte>."""
    return [byte - 256 if byte > 127 else byte for byte in data]


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    return SourceNet(tmp_path_factory.mktemp("frames"))


@pytest.fixture(scope="module")
def rows(digits):
    return digit_rows(digits, ROWS)


@pytest.fixture(scope="module")
def frame(spark, rows):
    """Labels as text, images as binary and as an array of bytes."""
    made = spark.createDataFrame(
        [
            (row["id"], str(row["label"]), bytearray(row["image"]), signed(row["image"]))
            for row in rows
        ],
        "id string, label string, image binary, listed array<byte>",
    )
    return made.cache()


@pytest.fixture(scope="module")
def trained(spark, net, frame):
    path = str(net.folder / "rows.parquet")
    frame.write.parquet(path)
    conf = net.config(spark, FRAMES, f"file:{path}", layer="CoSData", fields=TOPS)
    CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))
    return conf


def features_of(spark, conf, frame=None, events=None):
    sources = DataSource(spark)
    if frame is None:
        source = sources.getSource(conf, False)
    else:
        source = sources.fromDataFrame(conf, frame, False)
    return CaffeOnSpark(spark, None if events is None else events.append).features(source)


def test_a18_raw_images_and_labels_as_text_are_read(spark, rows, trained):
    check_content(features_of(spark, trained), rows)


def test_a18_an_array_of_bytes_is_an_image_in_both_kinds_of_layers(
    spark, net, rows, frame, trained
):
    listed = frame.selectExpr("id", "label", "listed as image")
    check_content(features_of(spark, trained, listed), rows)
    conf = net.config(spark, IMAGES, "", model=trained.modelPath)
    images = frame.selectExpr("id", "label", "listed as data")
    check_content(features_of(spark, conf, images), rows)


def test_a18_a_struct_with_an_array_of_bytes_is_an_image_file(spark, net, rows, trained):
    made = []
    for row in rows:
        file = io.BytesIO()
        Image.frombytes("L", (28, 28), row["image"]).save(file, "PNG")
        made.append((row["id"], row["label"], (28, 28, signed(file.getvalue()))))
    kind = "struct<height: int, width: int, image: array<byte>>"
    frame = spark.createDataFrame(made, f"id string, label int, image {kind}")
    tops = TOPS.replace("RAW_IMAGE", "ENCODED_IMAGE_WITH_DIM").replace(": INT ", ": FLOAT ")
    conf = net.config(spark, FRAMES, "", layer="CoSData", fields=tops, model=trained.modelPath)
    check_content(features_of(spark, conf, frame), rows)


def test_a17_columns_are_chosen_by_sql_and_formats_by_name(spark, net, rows, frame, trained):
    path = str(net.folder / "rows.orc")
    frame.selectExpr("id as SampleID", "label as digit", "image").write.orc(path)
    fields = (
        'channels: 1 height: 28 width: 28 dataframe_format: "orc" '
        'dataframe_column_select: "SampleID as id" dataframe_column_select: "image as data" '
        'dataframe_column_select: "cast(digit as int) as label"'
    )
    conf = net.config(spark, IMAGES, f"file:{path}", fields=fields, model=trained.modelPath)
    check_content(features_of(spark, conf), rows)


@pytest.mark.parametrize(
    ("label", "by_ranks"),
    [("label", True), ("digit as label", True), ("digit+0 as label", False), ("5 as label", False)],
)
def test_computed_columns_are_not_read_from_files(spark, net, frame, label, by_ranks):
    path = str(net.folder / "computed.parquet")
    table = frame.selectExpr("image as data", "label", "int(label) as digit")
    table.limit(2).write.mode("overwrite").parquet(path)
    fields = f'channels: 1 height: 28 width: 28 dataframe_column_select: "{label}" '
    conf = net.config(
        spark, IMAGES, f"file:{path}", fields=fields + 'dataframe_column_select: "data"'
    )
    source = DataSource(spark).getSource(conf, True)
    assert (source.file_rows() is not None) == by_ranks
    assert source.frame().columns == ["label", "data"]


def test_tables_are_not_read_as_plain_files(spark, net, frame):
    path = f"{net.folder}/delta_rows"
    frame.selectExpr("id", "label", "image as data").limit(2).write.parquet(path)
    Path(path, "_delta_log").mkdir()
    conf = net.config(spark, IMAGES, f"file:{path}")
    source = DataSource(spark).getSource(conf, True)
    for read in (source.file_rows, source.frame):
        with pytest.raises(FlagError, match=r'Delta table .*dataframe_format: "delta" in'):
            read()
    fields = 'channels: 1 height: 28 width: 28 dataframe_format: "delta"'
    conf = net.config(spark, IMAGES, f"file:{path}", fields=fields)
    assert DataSource(spark).getSource(conf, True).file_rows() is None  # so Spark reads the table
    Path(path, "_delta_log").rmdir()
    convert_to_deltalake(path)
    rows = DataSource(spark).getSource(conf, True).file_rows()
    assert rows.source.version == "Delta version 0"
    assert sum(batch.num_rows for batch in rows.read(0, 1)) == 2


def test_files_in_a_streams_log_are_read(spark, net, frame):
    path = Path(net.folder, "streamed")
    for name in ("counts", "failed"):
        frame.selectExpr("id", "label", "image as data").coalesce(1).write.parquet(f"{path}/{name}")
        (part,) = Path(path, name).glob("part*")
        part.rename(path / f"{name}.parquet")
    status = {
        "path": f"file://{path}/counts.parquet", "size": (path / "counts.parquet").stat().st_size,
        "isDir": False, "modificationTime": 0, "blockReplication": 1, "blockSize": 1 << 20,
        "action": "add",
    }  # fmt: skip
    (path / "_spark_metadata").mkdir()
    (path / "_spark_metadata" / "0").write_text(f"v1\n{json.dumps(status)}")
    source = DataSource(spark).getSource(net.config(spark, IMAGES, f"file:{path}"), True)
    assert source.file_rows() is None
    assert source.frame().count() == ROWS


def test_an_array_of_the_wrong_length_is_an_invalid_row(spark, net, rows, frame, trained):
    short = frame.selectExpr(
        "id", "label", f"if(id = '{rows[3]['id']}', slice(listed, 1, 783), listed) as image"
    )
    events = []
    trained.maxBadRecords = "1"
    try:
        check_content(features_of(spark, trained, short, events), rows[:3] + rows[4:])
    finally:
        trained.maxBadRecords = ""
    assert f"1 of {ROWS} rows cannot be used" in events[0]["text"]
    assert rows[3]["id"] in events[0]["text"]


def test_a_missing_column_is_named_with_those_that_there_are(spark, frame, trained):
    without = frame.selectExpr("id", "label", "listed")
    said = r"^the DataFrame has no column 'image' for the net; it has id string, label string, "
    with pytest.raises(FlagError, match=said + r"listed array<tinyint>$"):
        features_of(spark, trained, without)


def test_features_need_no_labels_unless_they_are_requested(spark, net, rows, frame, trained):
    given = {row["id"]: row["image"] for row in rows}
    images = net.config(spark, IMAGES, "", model=trained.modelPath, features="data,ip")
    tops = net.config(spark, FRAMES, "", layer="CoSData", fields=TOPS, features="data,ip")
    tops.modelPath = trained.modelPath
    for conf, name in ((images, "data"), (tops, "image")):
        found = features_of(spark, conf, frame.selectExpr("id", f"image as {name}")).collect()
        assert {row.SampleID: bytes(map(int, row.data)) for row in found} == given
    images.features = ["accuracy"]
    with pytest.raises(FlagError, match="no column 'label'"):
        features_of(spark, images, frame.selectExpr("id", "image as data"))
    with pytest.raises(FlagError, match="no column 'label'"):
        source = DataSource(spark).fromDataFrame(images, frame.selectExpr("image as data"), False)
        CaffeOnSpark(spark).test(source)


def test_a10_partitions_of_large_rows_change_no_value(spark, net, trained):
    wide = spark.range(0, 64, 1, 16).selectExpr(
        "cast(id as string) as id", "0 as label", "array_repeat(cast(id as byte), 40000) as data"
    )
    size = "channels: 1 height: 200 width: 200 "
    fields = size + "} transform_param { crop_size: 28 "
    conf = net.config(spark, IMAGES, "", fields=fields, model=trained.modelPath, features="data")
    found = features_of(spark, conf, wide)
    assert found.rdd.getNumPartitions() == 16
    values = {int(row.SampleID): set(row.data) for row in found.collect()}
    assert values == {number: {float(number)} for number in range(64)}


class DigitsOfAQueue(DataSource):
    """Like a message queue's topic: the driver queries for the rows."""

    def makeFrame(self, conf, layer, isTraining):
        assert layer["type"] == "MemoryData"
        conf.spark.table("queued_digits").createOrReplaceTempView("queue_now")
        return conf.spark.sql("select id, label, image as data from queue_now where label >= 0")


class NoFrame(DataSource):
    def makeFrame(self, conf, layer, isTraining):
        return ["rows"]


def test_a_custom_source_trains_and_tests(spark, net, rows, frame, trained):
    frame.createOrReplaceTempView("queued_digits")
    kind = f"{__name__}.DigitsOfAQueue"
    conf = net.config(spark, kind, "")
    CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))
    source = DataSource(spark).getSource(conf, False)
    check_content(CaffeOnSpark(spark).features(source), rows)
    assert set(CaffeOnSpark(spark).test(source)) == {"accuracy", "loss"}


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("com.yahoo.ml.caffe.HBase", "unknown source_class com.yahoo.ml.caffe.HBase; use one of "),
        ("HBase", "unknown source_class HBase; use one of DataFrameSource, ImageDataFrame, LMDB"),
        ("no.such.module.Rows", "cannot be loaded .*PYTHONPATH"),
        ("collections.OrderedDict", "is not a subclass of hearth.caffeonspark.DataSource"),
        ("hearth.caffeonspark.data_source.DataSource", r"does not override makeFrame\(\)"),
        (f"{__name__}.NoFrame", r"makeFrame\(\) of NoFrame returned a list instead of a DataFrame"),
    ],
)
def test_an_invalid_source_class_is_a_one_line_error(spark, net, kind, said):
    conf = net.config(spark, kind, "")
    with pytest.raises((FlagError, HearthError), match=said):
        CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))
