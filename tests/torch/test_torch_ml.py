"""TorchEstimator and TorchModel: digits, column types, saving, Pipelines, CrossValidator."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from digit_stages import accuracy, better_of, classes
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.functions import array_to_vector
from pyspark.sql import functions

from hearth.ml import TorchEstimator, TorchModel, trusted

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "torch"))


def make_net():
    from torch import nn

    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def make_line():
    return torch.nn.Linear(2, 1)


class OfBytes(torch.nn.Module):
    """Inputs are bytes and a vector; the output is one number per row."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(5, 1)

    def forward(self, data, vector):
        return self.layer(torch.cat([data.float() / 255, vector], 1))[:, 0]


def digits_estimator(epochs=30):
    loss = torch.nn.functional.cross_entropy
    stage = TorchEstimator(make_net, loss, torch.optim.Adam).setInputCols(["image"])
    return stage.setOutputCol("scores").setLearningRate(5e-3).setWorkers(2).setEpochs(epochs)


@pytest.fixture(scope="module")
def digits(spark):
    import ddp_digits

    x_train, x_test, y_train, y_test = ddp_digits.load()
    frames = [ddp_digits.frame(spark, *of) for of in ((x_train, y_train), (x_test, y_test))]
    return [frame.cache() for frame in frames]


def test_digits_in_a_pipeline_saved_and_loaded(spark, digits, tmp_path):
    train, held_out = digits
    Pipeline(stages=[digits_estimator(), classes("scores")]).save(str(tmp_path / "pipeline"))
    with trusted():
        model = Pipeline.load(str(tmp_path / "pipeline")).fit(train)
    found = model.transform(held_out)
    assert found.dtypes == [
        ("image", "array<float>"), ("label", "bigint"), ("scores", "array<float>"),
        ("prediction", "double"),
    ]  # fmt: skip
    assert accuracy(found) >= 0.95
    model.save(str(tmp_path / "model"))
    with trusted():
        again = PipelineModel.load(str(tmp_path / "model"))
    assert again.transform(held_out).collect() == found.collect()
    model.write().overwrite().save(str(tmp_path / "model"))
    folder = str(next((tmp_path / "model" / "stages").glob("0_*")))
    distrusted = TorchModel.load(folder)
    assert distrusted.history == model.stages[0].history
    with pytest.raises(ValueError, match=r"untrusted, so its pickled code is not run"):
        distrusted.transform(held_out)
    module = TorchModel.load(folder, trusted=True).module()
    state = distrusted.setModel(make_net).module().state_dict()
    assert all(torch.equal(state[name], value) for name, value in module.state_dict().items())
    row = found.first()
    assert module(torch.tensor([row.image]))[0].tolist() == pytest.approx(row.scores, abs=1e-4)


@pytest.mark.long
def test_a_cross_validator_finds_the_better_rate(digits):
    train, held_out = digits
    stage = digits_estimator(epochs=4).setWorkers(1)  # so that two fits run at a time
    validator = better_of(stage, stage.learningRate, [1e-6, 1e-2], "scores")
    best = validator.fit(train)
    assert best.avgMetrics[1] > best.avgMetrics[0] + 0.3
    assert accuracy(best.transform(held_out)) > 0.8


def test_bytes_and_vectors_are_inputs_and_stay(spark):
    rows = [(bytes([i, 255 - i, 7]), [i / 9.0, 1.0], i / 4.0) for i in range(40)]
    frame = spark.createDataFrame(rows, "data binary, list array<double>, label double")
    frame = frame.withColumn("v", array_to_vector("list"))
    loss = partial(torch.nn.functional.mse_loss)
    stage = TorchEstimator(OfBytes, lambda found, y: loss(found, y.float()), torch.optim.SGD)
    model = stage.setInputCols(["data", "v"]).fit(frame)
    found = model.transform(frame.withColumn("word", functions.lit("w")))
    kinds = [("v", "vector"), ("word", "string"), ("output", "float")]
    assert found.dtypes == [*frame.dtypes[:3], *kinds]
    module = model.module()
    for row in found.collect():
        data = torch.tensor([list(row.data)], dtype=torch.uint8)
        wanted = module(data, torch.tensor(row.v.toArray()[None], dtype=torch.float32))
        assert row.output == pytest.approx(wanted.item(), abs=1e-5)
        assert (row.word, row.v.toArray().tolist()) == ("w", row.list)


def test_two_workers_train_the_same_model_as_one(spark):
    """Each step has all rows, so DDP's mean over two workers is the mean over the rows."""
    rows = [([i / 8.0, 1.0], [i / 4.0]) for i in range(16)]
    frame = spark.createDataFrame(rows, "x array<float>, label array<float>").coalesce(1)
    states = []
    for workers in (1, 2):
        stage = TorchEstimator(make_line, torch.nn.functional.mse_loss, torch.optim.SGD)
        stage.setInputCols(["x"]).setBatchSize(16 // workers).setWorkers(workers)
        states.append(stage.setLearningRate(0.1).setSeed(3).fit(frame).state_dict())
    first, second = (state["weight"].numpy() for state in states)
    np.testing.assert_allclose(first, second, rtol=1e-5)


def test_errors_are_reported(spark, digits):
    train, _ = digits
    make, loss, sgd = make_line, torch.nn.functional.mse_loss, torch.optim.SGD
    with pytest.raises(TypeError, match="model is a Linear: pass a function or class"):
        TorchEstimator(make_line(), loss, sgd)
    with pytest.raises(TypeError, match="loss is a NoneType"):
        TorchEstimator(make, None, sgd)
    stage = TorchEstimator(make, loss, sgd)
    with pytest.raises(ValueError, match=r"set inputCols .* no column 'features'.* image, label"):
        stage.fit(train)
    with pytest.raises(ValueError, match=r"reads the column 'pixels', but .* has image, label"):
        stage.setInputCols(["pixels"]).fit(train)
    words = train.limit(4).withColumn("word", functions.lit("w"))
    with pytest.raises(Exception, match="column 'word' has values of type str"):
        stage.setInputCols(["word"]).fit(words)
    sums = TorchEstimator(
        make_net, partial(torch.nn.functional.cross_entropy, reduction="none"), sgd
    )
    with pytest.raises(Exception, match="the loss has shape"):
        sums.setInputCols(["image"]).fit(train.limit(4))
    with pytest.raises(ValueError, match="whose column 'label' is true, but its type is bigint"):
        digits_estimator().setValidationIndicatorCol("label").fit(train)
    with pytest.raises(ValueError, match="no rows to train on"):
        digits_estimator().fit(train.limit(0))


def line_estimator():
    stage = TorchEstimator(make_line, torch.nn.functional.mse_loss, torch.optim.SGD)
    return stage.setInputCols(["x"])


def test_columns_of_any_names_are_read_and_kept_in_streams_too(spark, tmp_path):
    rows = [(i / 8.0, [i / 8.0, 1.0], 1, 2, [i / 4.0]) for i in range(16)]
    frame = spark.createDataFrame(rows, "a double, b array<float>, c int, d int, e array<float>")
    frame = frame.toDF("a.b", "the.x", "two", "two", "Label").coalesce(1)
    model = line_estimator().setInputCols(["the.x"]).setLabelCol("label").fit(frame)
    found = model.transform(frame)
    assert found.columns == [*frame.columns, "output"]
    assert [tuple(row)[:5] for row in found.collect()] == [tuple(row) for row in frame.collect()]
    frame.toDF(*"abcde").write.parquet(str(tmp_path / "rows"))
    stream = spark.readStream.schema(frame.toDF(*"abcde").schema).parquet(str(tmp_path / "rows"))
    stream = model.transform(stream.toDF(*frame.columns)).toDF(*"abcdef").writeStream
    stream = stream.format("memory").queryName("outputs").trigger(availableNow=True)
    stream.start().awaitTermination()
    assert sorted(map(tuple, spark.table("outputs").collect())) == sorted(
        map(tuple, found.collect())
    )
    for name in ("OUTPUT", "Output"):
        with pytest.raises(ValueError, match=f"adds a column 'output', .* already, as '{name}'"):
            model.transform(frame.withColumn(name, functions.lit(1)))
    with pytest.raises(ValueError, match="column 'two', but 2 columns"):
        line_estimator().setInputCols(["two"]).fit(frame)


def test_nulls_and_losses_that_are_not_finite_end_a_training(spark):
    schema = "x array<float>, label array<float>"
    good = [([i / 8.0, 1.0], [i / 4.0]) for i in range(6)]
    nulls = [([1.0, None], [1.0]), ([1.0, 2.0], None), (None, [None])]
    frame = spark.createDataFrame(good + nulls, schema)
    with pytest.raises(ValueError, match="among 9 rows there are nulls of 'x' in 2, 'label' in 2"):
        line_estimator().setLearningRate(0.1).fit(frame)
    wrong = spark.createDataFrame([*good, ([1.0, 2.0], [float("nan")])], schema)
    with pytest.raises(Exception, match="the loss is nan in step 0, so the weights"):
        line_estimator().fit(wrong)
    model = line_estimator().fit(spark.createDataFrame(good, schema))
    with pytest.raises(Exception, match=r"column 'x' .* has 2 nulls in a batch of 9 rows"):
        model.transform(frame.coalesce(1)).collect()
    huge = spark.createDataFrame([([1.0, -1e300],)], "x array<double>")
    with pytest.raises(Exception, match=r"'x' has the value -1e\+300, which .* torch.float32"):
        model.transform(huge).collect()
