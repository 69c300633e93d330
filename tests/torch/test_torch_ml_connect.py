"""TorchEstimator, its model and predict() with a Spark Connect client.

Server and client are processes of their own: a Python process has one kind of session.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pyspark
import pytest

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(pyspark.__version__ < "4", reason="Spark 3.5 has no Connect server in it"),
]

SERVER = """
import sys
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
    .config("spark.connect.grpc.binding.address", "127.0.0.1")
    .config("spark.connect.grpc.binding.port", "0").getOrCreate()
)
service = getattr(spark._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
print(getattr(service, "MODULE$").localPort(), flush=True)
sys.stdin.read()  # until the test is over
spark.stop()
"""

CLIENT = """
import sys
import torch
from pyspark.sql import SparkSession
from hearth.ml import TorchEstimator, TorchModel, predict

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
assert not hasattr(spark, "_jsc")
folder, mse = sys.argv[2], torch.nn.functional.mse_loss
rows = spark.range(0, 80, 1, 2).selectExpr(
    "id", "array(id / 80, 1 - id / 40) features", "array(float(id / 20)) label")

def make_line():
    torch.manual_seed(1)
    return torch.nn.Linear(2, 1)

model = TorchEstimator(
    make_line, mse, torch.optim.Adam, learningRate=0.05, seed=3, epochs=2, workers=2,
    validationFraction=0.2, storeDir=f"file://{folder}/run").fit(rows)
assert [row["epoch"] for row in model.history] == [0, 1]
assert model.summary.frame(spark).count() == 2
found = model.transform(rows).orderBy("id").collect()
for _ in range(2):
    model.write().overwrite().save(f"{folder}/model")
untrusted = TorchModel.load(f"{folder}/model")
assert all(torch.equal(w, untrusted.state_dict()[k]) for k, w in model.state_dict().items())
again = TorchModel.load(f"{folder}/model", trusted=True)
assert again.transform(rows).orderBy("id").collect() == found

weights = model.state_dict()
def make_predict():
    line = make_line()
    line.load_state_dict(weights)
    return line
scores = predict(rows, make_predict, "features", "score array<float>", batch_size=64)
assert scores.columns == [*rows.columns, "score"]
assert [r.score for r in scores.orderBy("id").collect()] == [r.output for r in found]
print("all is well", flush=True)
"""


@pytest.fixture
def server():
    """The address of a Spark Connect server on a free port."""
    # Its workers run this Python only where they are told.
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", SERVER], env=env, **pipes) as process:
        try:
            yield f"sc://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()


def test_estimators_models_and_predictions_of_a_connect_client(server, tmp_path):
    command = [sys.executable, "-c", CLIENT, server, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.stdout == "all is well\n", done.stdout + done.stderr[-8000:]
