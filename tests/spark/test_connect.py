"""A Spark Connect client trains, tests and extracts features like a classic session.

In a process of its own: a Python process has one kind of session.
"""

import os
import subprocess
import sys

SCRIPT = """
import sys
from pyspark.sql import SparkSession
from hearth.caffeonspark import CaffeOnSpark, Config, DataSource

spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
assert not hasattr(spark, "_jsc")
conf = Config(spark, {"conf": sys.argv[1], "model": sys.argv[2], "clusterSize": "2",
                      "features": "ip1", "label": "label"})
cos, sources = CaffeOnSpark(spark), DataSource(spark)
cos.train(sources.getSource(conf, True))
result = cos.trainWithValidation(sources.getSource(conf, True), sources.getSource(conf, False))
assert result.columns == ["accuracy", "loss"] and result.count() == 2, result.collect()
rows = sources.fromDataFrame(conf, spark.read.parquet(sys.argv[3]), True)
cos.train(rows)
print("accuracy", cos.test(sources.getSource(conf, False))["accuracy"][0])
print("features", cos.features(sources.getSource(conf, False)).count())
conf.clusterSize = 3
try:
    cos.train(sources.getSource(conf, True))
except Exception as error:
    print("refused:", error)
"""


def test_connect(digits, tmp_path):
    solver = digits.solver("cos", max_iter=59, test_interval=20)
    command = [sys.executable, "-c", SCRIPT, solver, str(tmp_path / "m.caffemodel")]
    command.append(digits.table("raw", "train"))
    # The server that the client starts takes `python3` for its workers unless it is told.
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-4000:]
    assert float(done.stdout.split("accuracy ")[1].split()[0]) > 0.6
    assert int(done.stdout.split("features ")[1].split()[0]) == digits.held_out
    assert "3 ranks need 3 task slots" in done.stdout
