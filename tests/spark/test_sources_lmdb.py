"""An LMDB as the source of a fed layer: read in place by key ranges, repeatably."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lmdb_files import datum, write_lmdb
from PIL import Image
from source_nets import SourceNet, check_content, digit_rows, weights_of

from hearth import HearthError, data
from hearth.caffeonspark import CaffeOnSpark, DataSource, FlagError
from hearth.sources.frames import source_frame

KIND = "com.yahoo.ml.caffe.LMDB"
ROWS = 103  # prime, so no number of partitions divides it
SHAPE = (1, 28, 28)


def key(number):
    return f"{number:08d}"


@pytest.fixture(scope="module")
def rows(digits):
    """The digits with sortable keys as ids."""
    return [{**row, "id": key(number)} for number, row in enumerate(digit_rows(digits, ROWS))]


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    return SourceNet(tmp_path_factory.mktemp("lmdb"))


@pytest.fixture(scope="module")
def database(rows, net):
    records = {row["id"]: datum(row["image"], row["label"], SHAPE) for row in rows}
    return write_lmdb(net.folder / "digits_lmdb", records)


@pytest.fixture(scope="module")
def trained(spark, net, database):
    conf = net.config(spark, KIND, f"file:{database}")
    CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))
    return conf


def test_a17_an_lmdb_trains_as_parquet_with_its_rows_in_key_order_does(spark, net, rows, trained):
    table = pa.Table.from_pylist(rows).rename_columns({"image": "data"})
    pq.write_table(table, net.folder / "rows.parquet")
    source = f"file:{net.folder}/rows.parquet"
    conf = net.config(spark, "com.yahoo.ml.caffe.ImageDataFrame", source)
    CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))
    weights = weights_of(trained)
    assert [len(blob) for blob in weights] == [7840, 10]
    assert weights == weights_of(conf)


def test_large_images_read_in_place_train_like_small_ones(spark, net, rows, trained):
    records = {}
    for row in rows:
        image = io.BytesIO()
        Image.frombytes("L", (28, 28), row["image"]).save(image, "PNG")
        large = image.getvalue() + bytes(20_000)  # decoders ignore the padding
        records[row["id"]] = datum(large, row["label"], SHAPE, encoded=True)
    path = write_lmdb(net.folder / "large", records)
    conf = net.config(spark, KIND, f"file:{path}")
    CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))
    assert weights_of(conf) == weights_of(trained)


@pytest.mark.parametrize("partitions", [1, 3, 16])
def test_a10_features_have_each_record_once_in_any_number_of_partitions(
    spark, rows, trained, partitions
):
    trained.lmdb_partitions = partitions
    features = CaffeOnSpark(spark).features(DataSource(spark).getSource(trained, False))
    assert features.rdd.getNumPartitions() == partitions
    check_content(features, rows)


def test_more_parts_than_records_are_empty_or_have_one(spark, net):
    path = write_lmdb(net.folder / "two", {"a": datum(b"1", 1, (1, 1, 1)), "b": b""})
    frame = source_frame(data.lmdb(path).pin(), 5, spark)
    assert frame.rdd.getNumPartitions() == 5
    assert [(row.id, row.label, row.data) for row in frame.collect()] == [
        ("a", 1, b"1"),
        ("b", 0, None),
    ]
    empty = write_lmdb(net.folder / "empty", {})
    assert source_frame(data.lmdb(empty).pin(), 3, spark).collect() == []


def test_corrupt_records_are_invalid_rows_and_images_are_decoded(spark, net, rows, trained):
    image = io.BytesIO()
    Image.frombytes("L", (28, 28), rows[0]["image"]).save(image, "PNG")
    records = {row["id"]: datum(row["image"], row["label"], SHAPE) for row in rows[1:40]}
    records |= {
        rows[0]["id"]: datum(image.getvalue(), rows[0]["label"], (1, 28, 28), encoded=True),
        "bad-cut": datum(rows[0]["image"], 3, SHAPE)[:-300],
        "bad-short": datum(b"too few", 3, SHAPE),
        "bad-text": b"no Datum at all",
        # Large enough for the LMDB to store it in overflow pages of the file.
        "bad-long": datum(b"\x01" * 40_000, 3, (1, 200, 200)),
    }
    path = write_lmdb(net.folder / "spoiled", records)
    flags = {"features": "data,label", "model": trained.modelPath, "maxBadRecords": "4"}
    conf = net.config(spark, KIND, f"file:{path}", **flags)
    events = []
    features = CaffeOnSpark(spark, events.append).features(DataSource(spark).getSource(conf, False))
    check_content(features, rows[:40])
    assert "4 of 44 rows cannot be used" in events[0]["text"]
    assert all(name in events[0]["text"] for name in records if name.startswith("bad"))
    conf.maxBadRecords = "3"
    with pytest.raises(HearthError, match="but -maxBadRecords allows 3"):
        CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gone", "gone does not exist on this host"),
        ("text", "data.mdb is not an LMDB"),
    ],
)
def test_an_invalid_lmdb_is_a_one_line_error(spark, net, name, said):
    folder = net.folder / f"no_{name}"
    folder.mkdir()
    if name == "text":
        (folder / "data.mdb").write_bytes(b"no database" * 1000)
    path = folder if name == "text" else folder / name
    source = DataSource(spark).getSource(net.config(spark, KIND, f"file:{path}"), True)
    with pytest.raises(FlagError, match=said) as caught:
        CaffeOnSpark(spark).train(source)
    assert "\n" not in str(caught.value)


def test_an_lmdb_that_is_read_again_in_each_epoch_trains_the_same_model_again(spark, net, database):
    models = []
    for _ in range(2):
        conf = net.config(spark, KIND, f"file:{database}", spill="off")
        CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))
        models.append(weights_of(conf))
    assert models[0] == models[1]
    assert any(models[0][1])


def test_an_unreadable_lmdb_is_refused_with_the_remedy(spark, net):
    source = DataSource(spark).getSource(net.config(spark, KIND, "local:///name/digits"), True)
    with pytest.raises(
        FlagError, match=r"an LMDB is read in place.* in HDFS\): move it there, or convert it to"
    ):
        CaffeOnSpark(spark).train(source)
