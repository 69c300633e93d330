"""Programs in Scala and Java on a cluster, by spark-submit and the jar of jvm/ (`make jar`)."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import MARK, ROOT, marked_processes
from faults import check_nothing_left, processes_with
from waiting import wait_until

_TARGET = ROOT / "jvm" / "target"
JAR = _TARGET / "hearth-spark_2.13.jar"
PROGRAMS = _TARGET / "hearth-spark_2.13-tests.jar"
MAIN = "com.yahoo.ml.caffe.CaffeOnSpark"
_QUIET = ROOT / "python" / "hearth" / "spark" / "log4j2.properties"
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_START_S, _END_S = 120.0, 60.0

SAVES = """
import sys
import tensorflow as tf

class Doubles(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def serve(self, x):
        return {"doubled": 2 * x}

doubles = Doubles()
tf.saved_model.save(doubles, sys.argv[1], signatures=doubles.serve)
"""


class Submitted:
    """A program run by spark-submit in a separate process group, as a terminal would start it."""

    def __init__(self, folder: Path, home: Path, main: str, *arguments: str, **environment: str):
        self.folder, self.temporary = folder, folder / "tmp"
        self.temporary.mkdir()
        self._shared = set(os.listdir("/dev/shm"))
        self.mark = f"SUBMITTED={uuid.uuid4()}"
        local = str(self.temporary)
        environment = {
            **os.environ,
            **dict([MARK.split("="), self.mark.split("=")]),
            **{"TMPDIR": local, "SPARK_LOCAL_DIRS": local, "SPARK_LOCAL_IP": "127.0.0.1"},
            **{"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, **environment},
        }
        master = environment.pop("MASTER", "local-cluster[2,1,1024]")
        command = [str(home / "bin" / "spark-submit"), "--master", master]
        options = f"{_SHORT_LIVED} -Dlog4j2.configurationFile={_QUIET.as_uri()}"
        command += ["--driver-java-options", options, "--conf", "spark.ui.enabled=false"]
        command += ["--conf", f"spark.executor.extraJavaOptions={_SHORT_LIVED}", "--class", main]
        jars = [JAR, PROGRAMS] if main.startswith("com.yahoo.") else [PROGRAMS, JAR]
        own = ["--jars", str(jars[1]), str(jars[0])]
        with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
            self.process = subprocess.Popen(
                [*command, *own, *arguments],
                **{"env": environment, "stdout": out, "stderr": err, "start_new_session": True},
            )

    def said(self) -> str:
        return (self.folder / "stdout").read_text(errors="replace")

    def complained(self) -> str:
        return (self.folder / "stderr").read_text(errors="replace")

    def await_(self, what) -> None:
        """Waits until `what()` is true; fails if the program ends first."""
        done = wait_until(lambda: what() or self.process.poll() is not None, _START_S)
        assert done and what(), f"{self.said()}\n{self.complained()[-3000:]}"

    def result(self, name: str) -> str:
        """Waits for the program's RESULT line `name`, and returns its text."""
        line = re.compile(rf"^RESULT {name}: (.*)$", re.MULTILINE)
        self.await_(lambda: line.search(self.said()))
        return line.search(self.said())[1]

    def end(self) -> int:
        return self.process.wait(_END_S)

    def await_iterations(self) -> None:
        """Waits for the next logged iteration."""
        before = self.complained().count("Iteration ")
        self.await_(lambda: self.complained().count("Iteration ") > before)

    def check_nothing_left(self) -> None:
        check_nothing_left(self.mark, self.temporary, self._shared)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A SPARK_HOME with the jars, which are built first."""
    if shutil.which("mvn") is None:
        pytest.skip("Maven is not installed, so the jar cannot be built: apt-get install maven")
    subprocess.run(["make", "-s", "jar"], cwd=ROOT, check=True, timeout=280)
    from hearth.spark.session import writable_home

    return writable_home()


@pytest.fixture
def submit(tmp_path, home) -> Iterator:
    """Starts a program: submit(main class, arguments..., NAME=variable...)."""
    started = []

    def start(main: str, *arguments: str, **environment: str) -> Submitted:
        started.append(Submitted(tmp_path, home, main, *arguments, **environment))
        return started[-1]

    yield start
    for program in started:
        program.close()


def drivers() -> list[int]:
    """Ids of the Python processes that JVMs of these tests have started."""
    return marked_processes("from hearth.jvm import")


def environment_of(pid: int) -> str:
    """The process's environment variables; empty if the process has ended."""
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError:
        return ""


def secret_of(pid: int) -> str:
    return re.search(r"PYSPARK_GATEWAY_SECRET=(\w+)", environment_of(pid))[1]


@pytest.fixture(scope="module")
def endless(digits) -> str:
    return digits.solver("cos", max_iter=1000000, test_interval=None, test_iter=None)


@pytest.fixture(scope="module")
def saved_model(tmp_path_factory) -> str:
    """A SavedModel that doubles `x`."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    subprocess.run([sys.executable, "-c", SAVES, str(folder)], check=True, capture_output=True)
    return str(folder)


def own_solver(digits, kind: str, layer: str = "memory", **settings: object) -> str:
    """A solver whose net's layers use the source class `kind`."""
    solver = digits.solver(layer, **settings)
    net = Path(solver.replace("_solver", "_net"))
    text = re.sub(r'source_class: "[^"]*"', f'source_class: "{kind}"', net.read_text())
    text = re.sub(r" *dataframe_column_select: .*\n", "", text)  # names match already
    net.write_text(text.replace('source: "file:', f'source: "file:{digits.folder}/'))
    return solver


# Invalid source classes, with the errors that they cause.
NO_SOURCES = {
    "programs.Words": "makeRDD() of layer 'data' gave a java.lang.String where each element is a "
    "tuple (id, label, channels, height, width, encoded, bytes)",
    "programs.MakesNothing": "overrides neither makeRDD() nor makeFrame()",
    "programs.MakesBatches": "has a nextBatch(), which nothing calls",
    "programs.HasNoConstructor": "has no public constructor (Config, Int, Boolean)",
    "programs.IsNoSource": "is not a subclass of com.yahoo.ml.caffe.DataSource",
    "programs.Missing": "its jar and hearth's must be among --jars",
}


@pytest.fixture(scope="module")
def scala(home, digits, endless, saved_model, tmp_path_factory) -> Iterator[Submitted]:
    """The Scala program, while its last, endless training runs."""
    folder = tmp_path_factory.mktemp("scala")
    solver = digits.solver("cos", max_iter=40, test_interval=20)
    wrong = digits.solver("cos", max_iter="many")
    model, table = f"file:{digits.folder}/scala.caffemodel", digits.table("raw", "test")
    given = (solver, model, endless, wrong, table, saved_model, str(folder / "records"))
    own = own_solver(digits, "programs.DigitsOfAnRdd", max_iter=40, test_interval=None)
    given += (own, ",".join(own_solver(digits, kind) for kind in NO_SOURCES))
    program = Submitted(folder, home, "programs.DigitsInScala", *given)
    try:
        assert program.result("kill") == "a trainer"
        program.await_iterations()
        # The newest trainer: trainers of predictions live as long as their Python workers.
        os.kill(max(marked_processes("--control-fd")), signal.SIGKILL)
        program.await_(lambda: "kill: the JVM" in program.said())
        program.await_iterations()
        yield program
    finally:
        program.close()


def test_settings_have_caffeonsparks_names(scala, digits):
    assert scala.result("settings") == f"2 file:{digits.folder}/scala.caffemodel ip1 40"


def test_validations_and_means_have_the_nets_outputs(scala):
    assert scala.result("validations") == "accuracy,loss 2"
    means = dict(item.split("=") for item in scala.result("means").split())
    assert list(means) == ["accuracy", "loss"]
    assert float(means["accuracy"]) > 0.7


def test_features_are_a_dataframe_that_sql_joins(scala, digits):
    assert scala.result("joined") == f"{digits.held_out} {digits.held_out}"
    assert scala.result("schema") == "SampleID:STRING ip1:ARRAY<FLOAT> label:ARRAY<FLOAT>"


def test_jobs_have_the_callers_group(scala):
    assert int(scala.result("group")) >= 3


def test_tfrecord_files_and_a_saved_model(scala):
    assert scala.result("tensorflow") == "struct<n:double> struct<twice:float> 0.0,2.0,4.0"


def test_a_custom_source_trains_tests_and_extracts(scala, digits):
    kind, rows, accuracy = scala.result("own").split()
    assert (kind, rows) == ("DigitsOfAnRdd", str(digits.held_out))
    assert float(accuracy) > 0.7


def test_an_invalid_source_is_a_one_line_error(scala):
    scala.result("wrong")
    lines = re.findall(r"^RESULT refused: (.*)$", scala.said(), re.MULTILINE)
    assert len(lines) == len(NO_SOURCES)
    for line, said in zip(lines, NO_SOURCES.values(), strict=True):
        assert line.startswith("code=invalid_argument rank=-1 ") and said in line


def test_an_invalid_prototxt_is_reported_with_its_line(scala):
    wanted = (
        r"code=invalid_argument rank=-1 lost=false host=false \S+_solver\.prototxt:\d+:.*many.*"
    )
    assert re.fullmatch(wanted, scala.result("wrong"))


def test_a_refused_value_leaves_the_config_unchanged(scala):
    refused = "code=invalid_argument rank=-1 lost=false host=false -devices is 0; it must be"
    assert scala.result("kept") == f"{refused} at least 1; still 1"


def test_a_killed_trainer_is_reported_with_its_rank(scala):
    killed = scala.result("killed")
    assert re.match(r"code=unavailable rank=[01] lost=true host=true rank [01] ", killed), killed


def test_an_interrupted_thread_ends_its_training(scala):
    assert scala.result("interrupted") == "InterruptedException"


def test_the_secret_is_in_the_python_process_alone(scala):
    (driver,) = drivers()
    secret = secret_of(driver)
    assert len(secret) == 64
    assert not any(secret in line for line in processes_with(scala.mark))
    assert secret not in scala.said() + scala.complained()
    others = [pid for pid in marked_processes("") if pid != driver]
    assert others
    assert not any(secret in environment_of(pid) for pid in others)


def test_a_killed_jvm_leaves_no_process(scala):
    assert drivers()
    os.kill(scala.process.pid, signal.SIGKILL)
    assert scala.end() == -signal.SIGKILL
    assert wait_until(lambda: not drivers(), 60)
    scala.check_nothing_left()


def test_a_java_program_trains_and_tests(submit, digits):
    solver = digits.solver("cos", max_iter=40, test_interval=None, test_iter=None)
    model, table = f"file:{digits.folder}/java.caffemodel", digits.table("raw", "test")
    own = own_solver(digits, "programs.DigitsOfAFrame", "cos")
    program = submit("programs.DigitsInJava", solver, model, table, own)
    assert float(program.result("accuracy")) > 0.7
    assert program.result("joined") == "50 50 500"
    assert re.match(r"internal rank 0 on host \S+ failed: layer 'data'", program.result("found"))
    nines = sum(pq.read_table(table)["label"].to_numpy() == 9)
    assert program.result("own") == f"DigitsOfAFrame {digits.held_out - nines}"
    assert program.end() == 0
    assert wait_until(lambda: not drivers(), 30)  # the JVM kills its driver and does not wait
    assert "Traceback" not in program.complained()


def test_the_main_class_takes_caffeonsparks_flags(submit, digits):
    solver = digits.solver("cos", max_iter=40)
    model, means = digits.folder / "main.caffemodel", digits.folder / "main.txt"
    program = submit(
        MAIN,
        *("-train", "-test", "-conf", solver, "-model", f"file:{model}", "-clusterSize", "2"),
        *("-devices", "1", "-output", f"file:{means}"),
    )
    assert program.end() == 0, program.complained()
    assert means.read_text() == program.said()
    assert re.fullmatch(r"accuracy: 0\.\d+\nloss: \d\.\d+\n", program.said())
    assert wait_until(lambda: not drivers(), 30)  # the JVM kills its driver and does not wait


def test_the_main_class_reads_a_custom_source(submit, scala, digits, tmp_path):
    solver = own_solver(digits, "programs.PairsOfAnRdd", "cos")
    model, means = f"file:{digits.folder}/scala.caffemodel.own", tmp_path / "means.txt"
    program = submit(MAIN, "-test", "-conf", solver, "-model", model, "-output", f"file:{means}")
    assert program.end() == 0, program.complained()
    accuracy = float(re.match(r"accuracy: (\S+)\n", means.read_text())[1])
    assert accuracy == pytest.approx(float(scala.result("own").split()[2]))
    assert wait_until(lambda: not drivers(), 30)  # the JVM kills its driver and does not wait


def test_inference_is_a_main_class(submit, scala, saved_model, tmp_path):
    program = submit(
        "com.yahoo.tensorflowonspark.Inference",
        *("--export_dir", saved_model, "--input", str(scala.folder / "records")),
        *("--schema_hint", "struct<n:float>", "--input_mapping", '{"n": "x"}'),
        *("--output_mapping", '{"doubled": "twice"}', "--output", str(tmp_path / "made")),
        MASTER="local[1]",
    )
    assert program.end() == 0, program.complained()
    made = "".join(part.read_text() for part in (tmp_path / "made").glob("part-*.json"))
    assert sorted(made.split()) == ['{"twice":0.0}', '{"twice":2.0}', '{"twice":4.0}']


def test_a_tool_is_a_main_class_and_reports_a_mistake_in_one_line(submit):
    program = submit("com.yahoo.ml.caffe.tools.Vocab", "-output", "x", MASTER="local[1]")
    assert program.end() == 1
    (line,) = [text for text in program.complained().splitlines() if "HearthException" in text]
    assert line.endswith("hearth.HearthException: -imageCaptionDFDir is missing")
    assert "at hearth." not in program.complained()


def test_ctrl_c_ends_the_jvm_and_its_python(submit, digits, endless):
    flags = ("-train", "-conf", endless, "-model", f"file:{digits.folder}/endless.caffemodel")
    program = submit(MAIN, *flags, "-clusterSize", "2")
    program.await_iterations()
    os.killpg(program.process.pid, signal.SIGINT)
    assert program.end() == 130
    program.check_nothing_left()
    assert "Traceback" not in program.complained()


@pytest.mark.parametrize(
    ("python", "said"),
    [
        ('#!/bin/sh\nexec {python} -I -S "$@"\n', "has no package hearth: install hearth-spark"),
        ("#!/bin/sh\nexit 3\n", "ended with status 3 before it began"),
        (None, "cannot be started"),
    ],
)
def test_an_unusable_python_is_reported_in_one_line(submit, digits, tmp_path, python, said):
    program = tmp_path / "python"
    if python is not None:
        program.write_text(python.format(python=sys.executable))
        program.chmod(0o755)
    flags = ("-train", "-conf", digits.solver("cos"), "-model", "m")
    submitted = submit(MAIN, *flags, MASTER="local[1]", PYSPARK_PYTHON=str(program))
    assert submitted.end() == 1
    (line,) = [text for text in submitted.complained().splitlines() if "HearthException" in text]
    assert said in line and str(program) in line
    assert "at hearth." not in submitted.complained()
