"""The examples, as a user runs them, on the tests' Spark session."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "tensorflow"
sys.path.insert(0, str(EXAMPLES))
pytest.importorskip("tensorflow")


@pytest.fixture(scope="module", autouse=True)
def by_value():
    """Pickles the examples' functions by value, like those of a program's main module."""
    import files
    import keras_data_parallel
    import ml_pipeline
    import parallel_inference
    import streaming
    from pyspark import cloudpickle

    import feed

    for module in (feed, files, keras_data_parallel, ml_pipeline, parallel_inference, streaming):
        cloudpickle.register_pickle_by_value(module)


def test_a_dataframe_feeds_fit_and_the_model_predicts_in_parallel(spark, tmp_path):
    import parallel_inference

    import feed

    model = str(tmp_path / "model")
    assert feed.run(spark, feed.parse(["--export", model])) >= 0.95
    arguments = ["--model", model, "--output", str(tmp_path / "out")]
    assert parallel_inference.run(spark, parallel_inference.parse(arguments)) >= 0.95


# Other tests run these trainings without an example: test_dfutil.py and test_restart.py,
# test_keras_dataset.py and test_keras_recovery.py, test_streaming.py.
@pytest.mark.long
def test_a_node_trains_on_tfrecords(spark, tmp_path):
    import files

    arguments = ["--data", str(tmp_path / "data"), "--export", str(tmp_path / "model")]
    assert files.run(spark, files.parse(arguments)) >= 0.95


@pytest.mark.long
def test_two_nodes_train_one_keras_model_by_fit(spark, tmp_path):
    import keras_data_parallel

    arguments = keras_data_parallel.parse(["--model", str(tmp_path / "digits.keras")])
    assert keras_data_parallel.run(spark.sparkContext, arguments) >= 0.95


@pytest.mark.long
def test_a_stream_of_files_trains(spark, tmp_path):
    import streaming

    arguments = ["--data", str(tmp_path / "data"), "--export", str(tmp_path / "model")]
    assert streaming.run(spark, streaming.parse(arguments)) >= 0.95


@pytest.mark.long
def test_a_chief_and_workers_train_together_and_an_evaluator_watches(tmp_path):
    # Uses four slots of one process, because separate executors would start four more JVMs.
    program = [sys.executable, str(EXAMPLES / "roles.py"), "--model_dir", str(tmp_path / "model")]
    environment = {**os.environ, "MASTER": "local[4]", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(program, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    assert float(done.stdout.partition("accuracy: ")[2]) >= 0.95
    lines = (tmp_path / "model" / "accuracy.txt").read_text().splitlines()
    assert [line.split()[0] for line in lines] == [str(epoch) for epoch in range(8)]


@pytest.mark.long
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
