"""CaffeEstimator and CaffeModel: digits, history, saving, Pipelines, CrossValidator, rows kept."""

import os
import shutil
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from digit_stages import accuracy, better_of, classes
from faults import is_alive, trainers, victim
from pyspark.ml import Pipeline, PipelineModel
from pyspark.sql import functions
from waiting import wait_until

from hearth.ml import CaffeEstimator, CaffeModel
from hearth.ml.caffe_stages import _with


def estimator(digits, folder, layer="cos", **settings):
    stage = CaffeEstimator(digits.solver(layer, **settings), f"file:{folder}")
    return stage.setClusterSize(2).setBlobs(["ip2"])


def test_digits_in_a_pipeline_saved_and_loaded(spark, digits, tmp_path):
    stage = estimator(digits, tmp_path, max_iter=200, display=50, test_interval=100)
    stage.setFeaturesCol("pixels").setLabelCol("digit").setValidationIndicatorCol("held")
    whole = [spark.read.parquet(digits.table("raw", kind)) for kind in ("train", "test")]
    whole = [frame.selectExpr("id", "image pixels", "label digit") for frame in whole]
    rows = whole[0].withColumn("held", functions.lit(False))
    rows = rows.union(whole[1].withColumn("held", functions.lit(True)))
    Pipeline(stages=[stage, classes("ip2")]).save(str(tmp_path / "pipeline"))
    model = Pipeline.load(str(tmp_path / "pipeline")).fit(rows)
    found = model.transform(whole[1].withColumn("label", functions.col("digit")))
    assert found.columns == ["id", "pixels", "digit", "label", "ip2", "prediction"]
    assert accuracy(found) >= 0.93
    history = {(r.phase, r.output, r.iteration) for r in model.stages[0].history.collect()}
    assert {("TRAIN", "loss", 200), ("TRAIN", "lr", 200), ("TEST", "accuracy", 100)} <= history
    wanted = {row.id: (row.pixels, row.ip2) for row in found.collect()}
    model.save(str(tmp_path / "model"))
    for file in tmp_path.glob("*.caffemodel"):  # the saved model contains a copy
        file.unlink()
    again = PipelineModel.load(f"file:{tmp_path / 'model'}")
    unlabelled = again.transform(whole[1].drop("digit"))
    assert unlabelled.columns == ["id", "pixels", "ip2", "prediction"]
    assert {row.id: (row.pixels, row.ip2) for row in unlabelled.collect()} == wanted
    history = again.stages[0].history
    assert history.collect() == model.stages[0].history.collect()
    assert history.columns == ["iteration", "phase", "output", "value", "seconds", "images_per_s"]


def test_a_cross_validator_of_two_at_a_time_finds_the_better_rate(spark, digits, tmp_path):
    stage = estimator(digits, tmp_path, max_iter=40)
    validator = better_of(stage, stage.baseLr, [1e-7, 1e-2], "ip2")
    best = validator.fit(spark.read.parquet(digits.table("raw", "train")))
    assert best.avgMetrics[1] > best.avgMetrics[0] + 0.3


@pytest.mark.long
@pytest.mark.parametrize("kind", ["trainer", "executor"])
def test_a_cross_validator_survives_a_killed_process(spark, digits, tmp_path, kind):
    earlier, killed = set(trainers()), []

    def kill():
        def running():
            return [pid for pid in set(trainers()) - earlier if seconds_of(pid) > 0.3]

        pid = victim(kind, wait_until(running, 120)[0])
        os.kill(pid, signal.SIGKILL)
        killed.append(wait_until(lambda: not is_alive(pid), 30))

    injector = threading.Thread(target=kill)
    injector.start()
    stage = estimator(digits, tmp_path, max_iter=300)
    validator = better_of(stage, stage.baseLr, [1e-7, 1e-2], "ip2")
    best = validator.fit(spark.read.parquet(digits.table("raw", "train")))
    injector.join()
    assert killed == [True] and best.avgMetrics[1] > best.avgMetrics[0] + 0.3


def seconds_of(pid):
    """Processor seconds that a process has used; 0 if it has ended."""
    if not is_alive(pid):
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_every_row_stays_and_one_without_an_image_gets_nulls(spark, digits, tmp_path):
    rows = spark.read.parquet(digits.table("raw", "train")).repartition(3)
    model = estimator(digits, tmp_path, max_iter=1).fit(rows)
    empty = functions.when(functions.col("id") == rows.first().id, None)
    broken = rows.withColumn("image", empty.otherwise(functions.col("image")))
    found = model.transform(broken.withColumn("word", functions.concat("id", functions.lit("!"))))
    given = {row.id: row for row in broken.collect()}
    result = found.collect()
    assert sorted(row.id for row in result) == sorted(given)
    for row in result:
        before = given[row.id]
        assert (row.image, row.label, row.word) == (before.image, before.label, f"{row.id}!")
        assert (row.ip2 is None) == (row.image is None)
    assert sum(row.image is None for row in result) == 1


def test_errors_are_reported(spark, digits, tmp_path):
    rows = spark.read.parquet(digits.table("raw", "test")).limit(2)
    with pytest.raises(ValueError, match="CaffeEstimator needs conf: the solver's prototxt"):
        CaffeEstimator().fit(rows)
    stage = estimator(digits, tmp_path, max_iter=1)
    with pytest.raises(ValueError, match=r"reads the column 'pixels', but .* has "):
        stage.copy().setFeaturesCol("pixels").fit(rows)
    model = CaffeModel().setBlobs([])
    with pytest.raises(ValueError, match="CaffeModel needs blobs"):
        model.transform(rows)
    with pytest.raises(ValueError, match="adds a column 'image', which the DataFrame has already"):
        model.setBlobs(["image"]).transform(rows)


def test_fields_of_a_solver_are_replaced():
    text = 'max_iter: 5 base_lr: 0.1\nsnapshot_prefix: "a b" # prefix\n'
    found = _with(text, {"max_iter": 7, "snapshot_prefix": '"c"'})
    assert " ".join(found.split()) == 'base_lr: 0.1 # prefix max_iter: 7 snapshot_prefix: "c"'


def test_columns_of_any_names_stay(spark, digits, tmp_path):
    rows = spark.read.parquet(digits.table("raw", "test")).select("id", "image", "label").limit(60)
    added = rows.withColumns({name: functions.lit(name) for name in "abc"})
    frame = added.toDF("id", "the.image", "label", "two", "two", "x`y")
    model = estimator(digits, tmp_path, max_iter=1).setFeaturesCol("the.image").fit(frame)
    found = model.transform(frame)
    assert found.columns == [*frame.columns, "ip2"]
    result = {row[0]: tuple(row)[:6] for row in found.collect()}
    assert result == {row[0]: tuple(row) for row in frame.collect()}
    with pytest.raises(ValueError, match=r"adds a column 'ip2', .* already, as 'IP2'"):
        model.transform(frame.withColumn("IP2", functions.lit(1)))
    with pytest.raises(ValueError, match="reads the column 'two', but 2 columns of the DataFrame"):
        model.copy().setFeaturesCol("two").transform(frame)


def test_two_fits_run_at_once_and_a_model_transforms_a_stream(spark, digits, tmp_path):
    rows = spark.read.parquet(digits.table("raw", "test")).select("id", "image", "label").limit(60)
    stage = estimator(digits, tmp_path, max_iter=1)
    with ThreadPoolExecutor(2) as pool:
        models = list(pool.map(lambda n: stage.copy({stage.maxIter: n}).fit(rows), (1, 20)))
    assert len({model.getModelPath() for model in models}) == 2
    rows.write.parquet(str(tmp_path / "rows"))
    stream = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "rows"))
    found = models[1].transform(stream).writeStream.format("memory").queryName("blobs")
    found.trigger(availableNow=True).start().awaitTermination()
    before, wanted = (
        {row.id: row.ip2 for row in model.transform(rows).collect()} for model in models
    )
    assert before != wanted
    assert {row.id: row.ip2 for row in spark.table("blobs").collect()} == wanted
    first, second = (model.getModelPath().removeprefix("file:") for model in models)
    shutil.copy(second, first)  # replaces the first model's file
    assert {row.id: row.ip2 for row in models[0].transform(rows).collect()} == wanted


def test_a_missing_model_folder_is_named(spark, digits, tmp_path):
    rows = spark.read.parquet(digits.table("raw", "test")).select("id", "image", "label").limit(60)
    folder = tmp_path / "models"
    folder.mkdir()
    model = estimator(digits, folder, max_iter=1).fit(rows)
    shutil.rmtree(folder)
    for used in (lambda: model.transform(rows).collect(), lambda: model.save(str(tmp_path / "s"))):
        with pytest.raises(Exception, match=f"{model.uid}.caffemodel"):
            used()
    (tmp_path / "models").write_text("no folder")
    with pytest.raises(Exception, match=str(folder)):
        estimator(digits, folder, max_iter=1).fit(rows)
