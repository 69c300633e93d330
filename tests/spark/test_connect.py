"""A Spark Connect client trains, tests and extracts features like a classic session.

In a process of its own: a Python process has one kind of session.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = os.path.dirname(os.path.abspath(__file__))

# The first layer in Python that comes to forward number 20 raises, and notes when. Each notes that
# it was made.
LAYERS = """
import os, time, uuid
import caffe
import numpy as np

class RefusesOnOneRank(caffe.Layer):
    def setup(self, bottom, top):
        self.forwards = 0
        open(f"{self.param_str}/made-{uuid.uuid4()}", "w").close()

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom, top):
        self.forwards += 1
        if self.forwards == 20:
            try:
                with open(f"{self.param_str}/raised", "x") as file:
                    file.write(str(time.time()))
            except FileExistsError:
                pass
            else:
                raise ValueError("no more today")
        top[0].data[...] = np.maximum(bottom[0].data, 0)

    def backward(self, top, propagate_down, bottom):
        bottom[0].diff[...] = top[0].diff * (top[0].data > 0)
"""

# The first action of a session is the one that fails: nothing is warm.
FIRST = """
import os, sys, time
from pyspark.sql import SparkSession
from hearth import HearthError
from hearth.caffeonspark import CaffeOnSpark, Config, DataSource

spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
conf = Config(spark, {"conf": sys.argv[1], "model": sys.argv[2], "clusterSize": "2"})
sources, notes, events = DataSource(spark), sys.argv[3], []
try:
    CaffeOnSpark(spark, events.append).train(sources.getSource(conf, True))
except HearthError as error:
    heard = time.time()
    raised = float(open(f"{notes}/raised").read())
    print("after %.2f s" % (heard - raised), error)
print("made", len([name for name in os.listdir(notes) if name.startswith("made-")]), events)
"""

SCRIPT = """
import sys, time
from pyspark.sql import SparkSession, functions
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
warned = []
held_out = spark.read.parquet(sys.argv[3].replace("train", "test")).limit(40)
short = functions.expr("case when _row % 10 = 0 then substring(image, 1, 7) else image end")
number = functions.monotonically_increasing_id()
spoiled = held_out.withColumn("_row", number).withColumn("image", short)
features = CaffeOnSpark(spark, warned.append).features(sources.fromDataFrame(conf, spoiled, False))
left = features.count()
time.sleep(1)
print("left", left, [event["text"] for event in warned])
conf.clusterSize = 3
try:
    cos.train(sources.getSource(conf, True))
except Exception as error:
    print("refused:", error)
"""


# One training that nobody strikes, one whose trainer is killed: the same validations.
BROKEN = """
import glob, os, signal, sys, threading
from pyspark.sql import SparkSession
sys.path.insert(0, sys.argv[4])
import conftest, faults
from hearth.caffeonspark import CaffeOnSpark, Config, DataSource

os.environ.update([conftest.MARK.split("=")])
spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
prefix = sys.argv[3]
conf = Config(spark, {"conf": sys.argv[1], "model": sys.argv[2], "clusterSize": "2"})
struck = []

def strike():
    if faults.wait_until(lambda: os.path.exists(f"{prefix}_iter_100.hearth.json"), 60):
        struck.append(faults.trainers()[0])
        os.kill(struck[0], signal.SIGKILL)

def train():
    cos, sources = CaffeOnSpark(spark), DataSource(spark)
    frame = cos.trainWithValidation(sources.getSource(conf, True), sources.getSource(conf, False))
    return frame.collect()

unbroken = train()
for file in glob.glob(f"{prefix}_iter_*"):
    os.remove(file)
threading.Thread(target=strike).start()
broken = train()
print("struck", len(struck), "rows", len(broken), "same", broken == unbroken)
"""


def test_a_restart_without_live_events_keeps_the_validations_before_it(digits, tmp_path):
    prefix = str(tmp_path / "snap")
    solver = digits.solver(
        "cos", max_iter=500, test_interval=50, test_iter=2, snapshot=50, random_seed=5,
        snapshot_prefix=f'"{prefix}"',
    )  # fmt: skip
    command = [sys.executable, "-c", BROKEN, solver, str(tmp_path / "m.caffemodel"), prefix, HERE]
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "struck 1 rows 10 same True" in done.stdout


def test_the_first_error_of_a_session_comes_once_and_within_five_seconds(digits, tmp_path):
    solver = digits.solver("memory", max_iter=200)
    net = Path(solver.replace("_solver", "_net"))
    (tmp_path / "layers_of_connect.py").write_text(LAYERS)
    notes = tmp_path / "notes"
    notes.mkdir()
    mine = 'module: "layers_of_connect" layer: "RefusesOnOneRank"'
    refuses = f'type: "Python" python_param {{ {mine} param_str: "{notes}" }}'
    net.write_text(net.read_text().replace('type: "ReLU"', refuses))
    command = [sys.executable, "-c", FIRST, solver, str(tmp_path / "m.caffemodel"), str(notes)]
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-4000:]
    told = re.search(
        r"^after ([\d.]+) s rank \d on host \S+ failed: (.*)", done.stdout, re.MULTILINE
    )
    assert told, done.stdout
    assert "iteration 19: layer 'relu1' (Python), forward" in told[2]
    assert "no more today" in done.stdout
    assert float(told[1]) < 5
    assert "\nmade 2 []\n" in done.stdout  # one layer a rank: no attempt was repeated


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
    (left,) = [line for line in done.stdout.splitlines() if line.startswith("left ")]
    assert left.startswith("left 36 ")
    assert "4 of 40 rows cannot be used and were left out: 0" in left
    assert "3 ranks need 3 task slots" in done.stdout
