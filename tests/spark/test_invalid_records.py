"""Invalid sources and images in a Spark training: a one-line error, or rows skipped and counted."""

import io
import re
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from faults import trainers
from PIL import Image
from waiting import wait_until

from hearth import HearthError
from hearth.caffeonspark import CaffeOnSpark, DataSource, FlagError

GOOD, BAD = 200, 5


@pytest.fixture(scope="module")
def spoiled(spark, digits):
    """Digits with five invalid images, whose label would make the loss layer fail."""
    good = pq.read_table(digits.table("png", "train")).slice(0, GOOD)
    image = good.column("image")[0].as_py()
    wide = io.BytesIO()
    Image.new("L", (31, 28), 99).save(wide, "PNG")
    images = [b"not an image", image[: len(image) // 2], b"", None, wide.getvalue()]
    bad = pa.table(
        {
            "id": [f"bad-{number}" for number in range(BAD)],
            "label": pa.array([77] * BAD, pa.int32()),
            "image": pa.array(images, pa.binary()),
        }
    )
    path = digits.folder / "work" / "spoiled.parquet"
    pq.write_table(pa.concat_tables([good.slice(0, 60), bad, good.slice(60)]), path)
    return spark.read.parquet(str(path))


def config(spark, digits, **flags):
    solver = digits.solver("memory", batch=8, max_iter=20, test_interval=None, test_iter=None)
    return digits.config(spark, solver, clusterSize="2", **flags)


def test_invalid_images_are_skipped_with_their_labels_and_named(spark, digits, spoiled):
    conf = config(spark, digits, maxBadRecords="5")
    events = []
    CaffeOnSpark(spark, events.append).train(DataSource(spark).fromDataFrame(conf, spoiled, True))
    said = [event["text"] for event in events if event.get("level") == "W"]
    named = {found[1] for text in said if (found := re.search(r"Skipping row (bad-\d) ", text))}
    assert named == {f"bad-{number}" for number in range(BAD)}


def test_more_invalid_images_than_allowed_fail_the_run_with_their_names(spark, digits, spoiled):
    conf = config(spark, digits, maxBadRecords="4", maxRestarts="3")
    source = DataSource(spark).fromDataFrame(conf, spoiled, True)
    said = (
        r"rank \d on host \S+ failed: .*5 of \d+ rows cannot be used, but -maxBadRecords allows 4"
    )
    events = []
    before = trainers()  # trainers of features() end after half a minute
    with pytest.raises(HearthError, match=said + r".*bad-\d") as caught:
        CaffeOnSpark(spark, events.append).train(source)
    assert "\n" not in str(caught.value)
    assert not any(event.get("event") == "restart" for event in events)
    assert wait_until(lambda: set(trainers()) <= set(before), 60)


def test_features_skip_invalid_images_up_to_the_limit(spark, digits, trained, spoiled):
    source = DataSource(spark).fromDataFrame(trained, spoiled, False)
    try:
        trained.maxBadRecords = "5"
        ids = {row.SampleID for row in CaffeOnSpark(spark).features(source).collect()}
        assert len(ids) == GOOD
        assert not any(sample.startswith("bad") for sample in ids)
        trained.maxBadRecords = "0.001"
        with pytest.raises(Exception, match=r"but -maxBadRecords allows a fraction of 0\.001"):
            CaffeOnSpark(spark).features(source).collect()
    finally:
        trained.maxBadRecords = ""


def test_features_without_a_limit_warn_in_the_driver_with_number_and_names(
    spark, digits, trained, spoiled
):
    rows = spoiled.repartition(3)
    events = []
    features = CaffeOnSpark(spark, events.append).features(
        DataSource(spark).fromDataFrame(trained, rows, False)
    )
    assert not events
    for _ in range(2):  # the second time, workers and trainers are reused
        assert features.coalesce(1).count() == GOOD
        assert wait_until(lambda: events, 60)
    time.sleep(0.6)
    # The second action finds the same rows, and does not report them again.
    (text,) = [event["text"] for event in events]
    assert f"{BAD} of {GOOD + BAD} rows cannot be used and were dropped: " in text
    assert all(f"bad-{number}" in text for number in range(BAD))


def test_features_of_valid_rows_log_nothing(spark, digits, trained, spoiled):
    events = []
    good = spoiled.where("id not like 'bad%'")
    source = DataSource(spark).fromDataFrame(trained, good, False)
    assert CaffeOnSpark(spark, events.append).features(source).count() == GOOD
    time.sleep(0.6)
    assert not events


def test_features_with_a_limit_read_their_source_once(spark, digits, trained, spoiled):
    read = spark.sparkContext.accumulator(0)

    def counted(batches):
        for batch in batches:
            read.add(batch.num_rows)
            yield batch

    rows = spoiled.mapInArrow(counted, spoiled.schema)
    trained.maxBadRecords = "5"
    try:
        source = DataSource(spark).fromDataFrame(trained, rows, False)
        features = CaffeOnSpark(spark, lambda event: None).features(source)
        assert features.count() == GOOD
        features.unpersist()
    finally:
        trained.maxBadRecords = ""
    assert read.value == GOOD + BAD


def test_test_and_features_count_invalid_rows_of_all_partitions(spark, digits, trained, spoiled):
    # Each partition has at most one invalid row, which is half of the rows of a small partition.
    bad = spoiled.where("id like 'bad%'").repartition(BAD)
    rows = spoiled.where("id not like 'bad%'").coalesce(1).union(bad)
    source = DataSource(spark).fromDataFrame(trained, rows, False)
    said = rf"{BAD} of {GOOD + BAD} rows cannot be used"
    events = []
    try:
        for allowed, is_enough in (("5", True), ("0.03", True), ("4", False), ("0.02", False)):
            trained.maxBadRecords = allowed
            if is_enough:
                assert CaffeOnSpark(spark, events.append).test(source)
                text = events.pop()["text"]
                assert re.search(said, text)
                assert all(f"bad-{number}" in text for number in range(BAD))
                assert CaffeOnSpark(spark, events.append).features(source).count() == GOOD
                assert re.search(said, events.pop()["text"])
            else:
                with pytest.raises(HearthError, match=f"{said}, but -maxBadRecords allows "):
                    CaffeOnSpark(spark, events.append).test(source)
                with pytest.raises(HearthError, match=f"{said}, but -maxBadRecords allows "):
                    CaffeOnSpark(spark, events.append).features(source)
    finally:
        trained.maxBadRecords = ""


def test_a_limit_counts_partitions_with_the_same_names(spark, digits, trained, spoiled):
    source = DataSource(spark).fromDataFrame(trained, spoiled.union(spoiled), False)
    trained.maxBadRecords = str(2 * BAD - 1)
    try:
        with pytest.raises(HearthError, match=rf"{2 * BAD} of {2 * (GOOD + BAD)} rows"):
            CaffeOnSpark(spark).features(source)
    finally:
        trained.maxBadRecords = ""


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("gone.parquet", None, r"layer '\w+': .*gone\.parquet does not exist on this host"),
        ("empty.parquet", b"", r"empty\.parquet cannot be read as Parquet: .*0 bytes"),
        ("text.parquet", b"id,label\n1,2\n", r"text\.parquet cannot be read as Parquet: "),
        ("cut.parquet", "cut", r"cut\.parquet cannot be read as Parquet: "),
        ("folder/.hidden", b"", r"there are no files in .*folder"),
    ],
)
def test_an_unreadable_source_is_an_error_before_the_start(spark, digits, name, content, said):
    conf = config(spark, digits)
    path = digits.folder / "work" / "bad" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if content == "cut":
        with open(digits.table("png", "train"), "rb") as file:
            content = file.read()[:5000]
    if content is not None:
        path.write_bytes(content)
    source = path.parent if name.startswith("folder") else path
    conf.net["layer"][conf.train_data_layer_id]["memory_data_param"]["source"] = f"file:{source}"
    before = trainers()
    with pytest.raises(FlagError, match=said) as caught:
        CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))
    assert "\n" not in str(caught.value)
    assert set(trainers()) <= set(before)


def test_an_unwritable_model_is_an_error_before_the_start(spark, digits):
    conf = config(spark, digits, model=f"file:{digits.folder}/work/png/train.parquet/m.caffemodel")
    with pytest.raises((FlagError, HearthError), match=r"-model .*m\.caffemodel"):
        CaffeOnSpark(spark).train(DataSource(spark).getSource(conf, True))
