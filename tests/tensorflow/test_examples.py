"""The examples, as a user runs them, on the tests' Spark session."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "tensorflow"))
pytest.importorskip("tensorflow")


@pytest.fixture(scope="module", autouse=True)
def by_value():
    """The examples' functions travel by value, as those of a program's main module do."""
    import files
    import ml_pipeline
    import parallel_inference
    from pyspark import cloudpickle

    import feed

    for module in (feed, files, ml_pipeline, parallel_inference):
        cloudpickle.register_pickle_by_value(module)


def test_a_dataframe_feeds_fit_and_the_model_predicts_in_parallel(spark, tmp_path):
    import parallel_inference

    import feed

    model = str(tmp_path / "model")
    assert feed.run(spark, feed.parse(["--export", model])) >= 0.95
    arguments = ["--model", model, "--output", str(tmp_path / "out")]
    assert parallel_inference.run(spark, parallel_inference.parse(arguments)) >= 0.95


def test_a_node_trains_on_tfrecords(spark, tmp_path):
    import files

    arguments = ["--data", str(tmp_path / "data"), "--export", str(tmp_path / "model")]
    assert files.run(spark, files.parse(arguments)) >= 0.95


def test_a_pipeline_trains_and_transforms_and_is_saved(spark, tmp_path):
    import digits_model
    import ml_pipeline
    from pyspark.ml import Pipeline, PipelineModel

    from tensorflowonspark import pipeline

    assert ml_pipeline.run(spark, ml_pipeline.parse(["--export", str(tmp_path / "model")])) >= 0.95
    model = pipeline.TFModel({}).setExportDir(str(tmp_path / "model"))
    model.setInputMapping({"image": "image"}).setOutputMapping({"output_0": "logits"})
    PipelineModel([model]).save(str(tmp_path / "saved"))
    _, pixels, _, labels = digits_model.load()
    rows = digits_model.frame(spark, pixels[:20], labels[:20])
    loaded = PipelineModel.load(str(tmp_path / "saved")).transform(rows)
    assert loaded.columns == ["logits"]
    assert [row.logits for row in loaded.collect()] == [
        row.logits for row in model.transform(rows).collect()
    ]
    stage = pipeline.TFEstimator(ml_pipeline.train_fn, {"a": 1}).setEpochs(3)
    Pipeline(stages=[stage]).save(str(tmp_path / "estimator"))
    (back,) = Pipeline.load(str(tmp_path / "estimator")).getStages()
    assert (back.getEpochs(), back.args.a, back.getMasterNode()) == (3, 1, "chief")
    assert back.train_fn.__name__ == "train_fn"
