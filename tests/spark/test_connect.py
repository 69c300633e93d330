"""A Spark Connect client trains, tests and extracts features like a classic session.

One separate process runs the parts of all tests, because a Python process can have only one kind of
session and a server starts slowly. Each test checks its part of the process's output.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
# Limit for all parts together, on a busy machine.
pytestmark = pytest.mark.timeout(600)

# The first of these layers to run forward() 20 times raises and records the time. Each layer also
# records its creation.
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

# argv[2] is JSON: the arguments of each part.
PROGRAM = """
import glob, json, os, signal, sys, threading, time, traceback
from pyspark.sql import SparkSession, functions
sys.path.insert(0, sys.argv[1])
import conftest, faults
from hearth import HearthError
from hearth.caffeonspark import CaffeOnSpark, Config, DataSource

os.environ.update([conftest.MARK.split("=")])
spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
assert not hasattr(spark, "_jsc")
sources = DataSource(spark)

def config(solver, model, **others):
    return Config(spark, {"conf": solver, "model": model, "clusterSize": "2", **others})

# The first action of a session fails: nothing is warm.
def error(solver, model, notes):
    events, conf = [], config(solver, model)
    try:
        CaffeOnSpark(spark, events.append).train(sources.getSource(conf, True))
    except HearthError as error:
        caught = time.time()
        raised = float(open(f"{notes}/raised").read())
        print("after %.2f s" % (caught - raised), error)
    print("made", len([name for name in os.listdir(notes) if name.startswith("made-")]))
    print("saw", [event["event"] for event in events].count("ready"), "ready")

# Once with rank 0 reaching this process, once with no connection.
def live(solver, model):
    def train():
        seen, running, others = [], [], set(faults.trainers())

        def on_event(event):
            seen.append(event)
            if event["event"] == "progress":
                running.append(bool(set(faults.trainers()) - others))

        conf = config(solver, model)
        CaffeOnSpark(spark, on_event).train(sources.getSource(conf, True))
        came = [event for event in seen if event["event"] == "progress"]
        assert came, f"no progress among {seen}"
        assert not any(event["event"] == "restart" for event in seen), seen
        late = sum("seconds" in event for event in came)
        print("came", running[0], "late", late, "of", len(came), "to", came[-1]["iteration"])
        return [event["text"] for event in seen if event.get("level") == "W"]

    print("warned", train())
    os.environ["TFOS_SERVER_HOST"] = "203.0.113.1"
    try:
        print("warned", train())
    finally:
        del os.environ["TFOS_SERVER_HOST"]

def session(solver, model, table):
    conf = config(solver, model, features="ip1", label="label")
    cos = CaffeOnSpark(spark)
    cos.train(sources.getSource(conf, True))
    result = cos.trainWithValidation(sources.getSource(conf, True), sources.getSource(conf, False))
    assert result.columns == ["accuracy", "loss"] and result.count() == 2, result.collect()
    found = cos.history.collect()
    print("history", sorted({(row.phase, row.output) for row in found}))
    print("tested after", [row.iteration for row in found if row.output == "accuracy"])
    print("trained to", [row.iteration for row in found if row.phase == "TRAIN"][-1])
    rows = sources.fromDataFrame(conf, spark.read.parquet(table), True)
    cos.train(rows)
    print("accuracy", cos.test(sources.getSource(conf, False))["accuracy"][0])
    print("features", cos.features(sources.getSource(conf, False)).count())
    warned = []
    held_out = spark.read.parquet(table.replace("train", "test")).limit(40)
    short = functions.expr("case when _row % 10 = 0 then substring(image, 1, 7) else image end")
    number = functions.monotonically_increasing_id()
    spoiled = held_out.withColumn("_row", number).withColumn("image", short)
    warner = CaffeOnSpark(spark, warned.append)
    left = warner.features(sources.fromDataFrame(conf, spoiled, False)).count()
    faults.wait_until(lambda: warned, 60 if spark.version >= "4" else 0)
    print("left", left, [event["text"] for event in warned])
    conf.clusterSize = 3
    try:
        cos.train(sources.getSource(conf, True))
    except Exception as error:
        print("refused:", error)

# One training without a fault, one whose trainer is killed: the same validations.
def restart(solver, model, prefix):
    killed, found, conf = [], [], config(solver, model)
    others = set(faults.trainers())  # of the predictions before

    def kill():
        if faults.wait_until(lambda: os.path.exists(f"{prefix}_iter_100.hearth.json"), 60):
            killed.append(min(set(faults.trainers()) - others))
            os.kill(killed[0], signal.SIGKILL)

    def train():
        train, test = sources.getSource(conf, True), sources.getSource(conf, False)
        return CaffeOnSpark(spark, found.append).trainWithValidation(train, test).collect()

    unbroken = train()
    for file in glob.glob(f"{prefix}_iter_*"):
        os.remove(file)
    threading.Thread(target=kill).start()
    broken = train()
    print([event["reason"] for event in found if event["event"] == "restart"])
    print("rows", len(broken), "same", broken == unbroken)

for name, part in (("error", error), ("live", live), ("session", session), ("restart", restart)):
    print("== " + name)
    try:
        part(**json.loads(sys.argv[2])[name])
    except Exception:
        traceback.print_exc(file=sys.stdout)
"""


def refusing_solver(digits, notes):
    """A solver whose nets contain a RefusesOnOneRank layer."""
    solver = digits.solver("memory", max_iter=200)
    net = Path(solver.replace("_solver", "_net"))
    mine = 'module: "layers_of_connect" layer: "RefusesOnOneRank"'
    refuses = f'type: "Python" python_param {{ {mine} param_str: "{notes}" }}'
    net.write_text(net.read_text().replace('type: "ReLU"', refuses))
    return solver


@pytest.fixture(scope="module")
def said(digits, tmp_path_factory):
    """The process's output, by part."""
    folder = tmp_path_factory.mktemp("connect")
    model, prefix, notes = str(folder / "m.caffemodel"), str(folder / "snap"), folder / "notes"
    notes.mkdir()
    (folder / "layers_of_connect.py").write_text(LAYERS)
    often = digits.solver(
        "cos", max_iter=500, test_interval=50, test_iter=2, snapshot=50, random_seed=5,
        snapshot_prefix=f'"{prefix}"',
    )  # fmt: skip
    parts = {
        "error": {"solver": refusing_solver(digits, notes), "notes": str(notes)},
        "live": {"solver": digits.solver("cos", max_iter=400, test_interval=None, test_iter=None)},
        "session": {
            "solver": digits.solver("cos", max_iter=59, test_interval=20),
            "table": digits.table("raw", "train"),
        },
        "restart": {"solver": often, "prefix": prefix},
    }
    parts = {name: {**part, "model": model} for name, part in parts.items()}
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    # The server that the client starts runs workers with `python3` unless configured otherwise.
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path}
    command = [sys.executable, "-c", PROGRAM, HERE, json.dumps(parts)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    printed = dict(part.split("\n", 1) for part in done.stdout.split("== ")[1:])
    assert list(printed) == list(parts), done.stdout
    print(done.stderr[-20000:])  # log of the session's executor; pytest shows it if a test fails
    return printed


def test_the_first_error_of_a_session_arrives_once(said):
    found = re.search(
        r"^after ([\d.]+) s rank \d on host \S+ failed: (.*)", said["error"], re.MULTILINE
    )
    assert found, said["error"]
    assert "iteration 19: layer 'relu1' (Python), forward" in found[2]
    assert "no more today" in said["error"]
    assert float(found[1]) < 30  # a second or two on an idle machine
    assert "\nmade 2\nsaw 1 ready\n" in said["error"]  # one layer per rank: no retry


def test_events_arrive_live_or_with_the_result(said):
    assert len(said["live"].splitlines()) == 4, said["live"]
    live, warned, late, found = said["live"].splitlines()
    assert re.fullmatch(r"came True late 0 of \d+ to 400", live), said["live"]
    assert warned == "warned []"
    # Trainers may still be running when these events arrive, so `came` may be True or False.
    count = re.fullmatch(r"came \w+ late (\d+) of (\d+) to 400", late)
    assert count and count[1] == count[2], said["live"]
    assert "no progress was shown while the training ran: " in found and "203.0.113.1" in found


def test_a_session_trains_tests_and_extracts_features(said, digits):
    printed = said["session"]
    assert "refused: 3 ranks need 3 task slots" in printed, printed
    assert float(printed.split("accuracy ")[1].split()[0]) > 0.6
    assert int(printed.split("features ")[1].split()[0]) == digits.held_out
    names = [("TEST", "accuracy"), ("TEST", "loss"), ("TRAIN", "loss"), ("TRAIN", "lr")]
    assert f"history {names}\ntested after [20, 40]\ntrained to 59\n" in printed
    (left,) = [line for line in printed.splitlines() if line.startswith("left ")]
    assert left.startswith("left 36 ")
    if pyspark.__version__ >= "4":  # earlier versions count no rows for Connect clients
        assert "4 of 40 rows cannot be used and were dropped: 0" in left


def test_a_restart_keeps_the_validations_before_it(said):
    # One restart, with the report that arrived first: the worker's, or the trainer's closed
    # connection.
    lost = r"its trainer process was killed by SIGKILL|went away: it closed the connection"
    reasons = said["restart"].splitlines()[0]
    assert len(re.findall(lost, reasons)) == 1 and reasons.count("rank ") == 1, said["restart"]
    assert "rows 10 same True" in said["restart"], said["restart"]
