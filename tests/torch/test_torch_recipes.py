"""The programs of docs/recipes.md on few rows: the results show that data and gradients arrive."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from pyspark import cloudpickle

pytestmark = pytest.mark.long
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "torch"
sys.path.insert(0, str(EXAMPLES))


def program(name):
    """Imports an example and pickles its functions by value, like those of a main module."""
    module = importlib.import_module(name)
    cloudpickle.register_pickle_by_value(module)
    return module


def test_two_towers_rank_the_items_of_a_users_taste_first(spark, tmp_path):
    recipe = program("two_tower")
    given = ["--report", str(tmp_path / "report.json"), "--table_rows", "20000"]
    found = recipe.run(spark, recipe.parse(given))
    assert found["right"] >= 0.9 and found["ranks_agree"]


def test_a_text_classifier_learns_from_strings(spark, tmp_path):
    recipe = program("text_classifier")
    given = ["--report", str(tmp_path / "report.json"), "--rows", "1200"]
    assert recipe.run(spark, recipe.parse(given)) >= 0.9


def test_a_network_between_spark_ml_stages_and_metrics(spark, tmp_path):
    recipe = program("tabular")
    given = ["--model", str(tmp_path / "tabular.pt"), "--rows", "2000"]
    assert recipe.run(spark, recipe.parse(given)) >= 0.95


def test_two_trainings_at_a_time_find_the_best_rate(spark):
    recipe = program("parameter_search")
    losses = recipe.run(spark, recipe.parse(["--rates", "0.0001", "0.1"]))
    assert list(losses) == [0.1, 0.0001]
    assert losses[0.1] < 0.01 and losses[0.0001] > 1


def test_each_micro_batch_trains_from_the_last_checkpoint_on(spark, tmp_path):
    recipe = program("stream_tuning")
    rows, state = tmp_path / "rows", tmp_path / "state"
    given = recipe.parse(["--rows", str(rows), "--state", str(state), "--workers", "1"])
    # Each file has rows that determine one of the two weights.
    for x, y in (("array(float(v), 0f)", "3 * v"), ("array(0f, float(v))", "-2 * v")):
        values = spark.range(0, 200, 1, 1).selectExpr("pmod(hash(id), 100) / 50 - 1 v")
        frame = values.selectExpr(f"{x} x", f"float({y}) y")
        frame.write.mode("append").parquet(str(rows))
    found = recipe.run(spark, given)
    assert found["batches"] == 2
    assert abs(found["weight"][0] - 3) < 0.1 and abs(found["weight"][1] + 2) < 0.1


def test_jpeg_files_tune_the_last_layer_of_a_frozen_trunk(spark, tmp_path):
    recipe = program("jpeg_tuning")
    given = ["--trunk", str(tmp_path / "trunk.pt"), "--report", str(tmp_path / "report.json")]
    given += ["--no-torchvision"]
    found = recipe.run(spark, recipe.parse(given))
    assert found["accuracy"] >= 0.85 and found["trunk_is_kept"]


def test_adapters_of_a_sharded_transformer_learn_and_the_rest_stays(spark, tmp_path):
    recipe = program("lora")
    given = ["--report", str(tmp_path / "report.json"), "--no-peft"]
    given += ["--checkpoints", str(tmp_path / "checkpoints")]
    found = recipe.run(spark, recipe.parse(given))
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["checkpoint-000002-step-2", "checkpoint-000003-step-3"]
    assert found["loss"] < 0.3  # from 2.5 at the start
    assert len(found["changed"]) == 18 and all("lora_" in name for name in found["changed"])
    assert found["trained"] < found["all"] / 5
