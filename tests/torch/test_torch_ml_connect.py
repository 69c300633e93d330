"""TorchEstimator, its model, CrossValidator, predict() and TorchDistributor with Spark Connect.

Server and client are separate processes: a Python process can have only one kind of session.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pyspark
import pytest

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1000),
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
"""

ESTIMATOR = """
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
"""

# A fold's two trials run at the same time, each on one of the two slots.
VALIDATOR = """
from pyspark.ml.evaluation import Evaluator
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

class MeanSquare(Evaluator):
    def _evaluate(self, frame):
        return frame.selectExpr("avg(pow(output[0] - label[0], 2))").first()[0]

    def isLargerBetter(self):
        return False

stage = TorchEstimator(make_line, mse, torch.optim.Adam, seed=3, epochs=8, batchSize=8)
grid = ParamGridBuilder().addGrid(stage.learningRate, [1e-7, 0.1]).build()
validator = CrossValidator(estimator=stage, estimatorParamMaps=grid, evaluator=MeanSquare(),
                           numFolds=2, parallelism=2, seed=5)
best = validator.fit(rows)
assert best.avgMetrics[1] < best.avgMetrics[0] / 2, best.avgMetrics
assert len(best.bestModel.history) == 8
assert MeanSquare().evaluate(best.transform(rows)) < best.avgMetrics[0] / 2
"""

DISTRIBUTOR = """
import os
from hearth.torch import NodeError, TorchDistributor

def train(start, scale=1):
    import os
    import torch.distributed as dist

    dist.init_process_group("gloo")
    value = torch.tensor([start + dist.get_rank()]) * scale
    dist.all_reduce(value)
    dist.destroy_process_group()
    print("said by a rank")
    if start < 0:
        raise ValueError("no more")
    return {"sum": value, "world": int(os.environ["WORLD_SIZE"])}

distributor = TorchDistributor(num_processes=2, local_mode=False, use_gpu=False)
found = distributor.run(train, 10, scale=2)
assert found["sum"].tolist() == [42] and found["world"] == 2
here = TorchDistributor(num_processes=2, local_mode=True, use_gpu=False)
assert here.run(train, 1)["sum"].tolist() == [3]
with open(f"{folder}/train.py", "w") as file:
    file.write("import os, sys; open(f'{sys.argv[1]}/rank' + os.environ['RANK'], 'w').close()")
assert distributor.run(f"{folder}/train.py", folder) is None
assert {"rank0", "rank1"} <= set(os.listdir(folder))
try:
    distributor.run(train, -1)
except NodeError as error:
    assert "ValueError: no more" in str(error), error
else:
    raise AssertionError("the ranks fail")
"""


@pytest.fixture(scope="module")
def server():
    """The address of a Spark Connect server on a free port."""
    # The server's workers run this Python only if configured.
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", SERVER], env=env, **pipes) as process:
        try:
            yield f"sc://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()


@pytest.mark.parametrize(
    "program",
    [ESTIMATOR, VALIDATOR, DISTRIBUTOR],
    ids=["estimator", "cross-validator", "distributor"],
)
def test_a_program_runs_as_a_client_of_spark_connect(server, tmp_path, program):
    text = f"{CLIENT}{program}\nprint('all is well', flush=True)\n"
    command = [sys.executable, "-c", text, server, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    # Not the whole output: ranks on the client's host print to its standard output, too.
    assert done.stdout.endswith("all is well\n"), done.stdout + done.stderr[-8000:]
    if program is DISTRIBUTOR:
        assert re.search(r"(?m)^\[rank 1 \S+\] said by a rank$", done.stderr), done.stderr
