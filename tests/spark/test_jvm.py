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

import pytest
from conftest import MARK, ROOT, marked_processes
from faults import check_nothing_left, processes_with, wait_until

_TARGET = ROOT / "jvm" / "target"
JAR = _TARGET / "hearth-spark_2.13.jar"
PROGRAMS = _TARGET / "hearth-spark_2.13-tests.jar"
MAIN = "com.yahoo.ml.caffe.CaffeOnSpark"
_QUIET = ROOT / "python" / "hearth" / "spark" / "log4j2.properties"
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_START_S, _END_S = 120.0, 60.0


class Submitted:
    """A program that spark-submit runs, in a process group of its own, as in a terminal."""

    def __init__(self, folder: Path, home: Path, main: str, *arguments: str, **environment: str):
        self.folder, self.temporary = folder, folder / "tmp"
        self.temporary.mkdir()
        self.mark = f"SUBMITTED={uuid.uuid4()}"
        local = str(self.temporary)
        environment = {
            **os.environ,
            **dict([MARK.split("="), self.mark.split("=")]),
            **{"TMPDIR": local, "SPARK_LOCAL_DIRS": local, "SPARK_LOCAL_IP": "127.0.0.1"},
            **{"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, **environment},
        }
        command = [str(home / "bin" / "spark-submit"), "--master", "local-cluster[2,1,1024]"]
        options = f"{_SHORT_LIVED} -Dlog4j2.configurationFile={_QUIET.as_uri()}"
        command += ["--driver-java-options", options, "--conf", "spark.ui.enabled=false"]
        command += ["--conf", f"spark.executor.extraJavaOptions={_SHORT_LIVED}", "--class", main]
        own = [str(JAR)] if main == MAIN else ["--jars", str(JAR), str(PROGRAMS)]
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
        """Waits until `what()`, while the program runs."""
        done = wait_until(lambda: what() or self.process.poll() is not None, _START_S)
        assert done and what(), f"{self.said()}\n{self.complained()[-3000:]}"

    def result(self, name: str) -> str:
        """What the program printed of that name; waits for it."""
        line = re.compile(rf"^RESULT {name}: (.*)$", re.MULTILINE)
        self.await_(lambda: line.search(self.said()))
        return line.search(self.said())[1]

    def end(self) -> int:
        return self.process.wait(_END_S)

    def await_iterations(self) -> None:
        """Waits until a training that begins now has come some way."""
        before = self.complained().count("Iteration ")
        self.await_(lambda: self.complained().count("Iteration ") > before)

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """SPARK_HOME, with the jars built."""
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


def secret_of(pid: int) -> str:
    environment = Path(f"/proc/{pid}/environ").read_text(errors="replace")
    return re.search(r"PYSPARK_GATEWAY_SECRET=(\w+)", environment)[1]


@pytest.fixture(scope="module")
def endless(digits) -> str:
    return digits.solver("cos", max_iter=1000000, test_interval=None, test_iter=None)


def test_a_scala_program(submit, digits, endless):
    shared = set(os.listdir("/dev/shm"))
    solver = digits.solver("cos", max_iter=40, test_interval=20)
    wrong = digits.solver("cos", max_iter="many")
    model = f"file:{digits.folder}/scala.caffemodel"
    table = digits.table("raw", "test")
    program = submit("programs.DigitsInScala", solver, model, endless, wrong, table)

    # Settings by CaffeOnSpark's names; sources, trainings and tests; features as a DataFrame.
    assert program.result("settings") == f"2 {model} ip1 40"
    assert program.result("validations") == "accuracy,loss 2"
    means = dict(item.split("=") for item in program.result("means").split())
    assert list(means) == ["accuracy", "loss"] and float(means["accuracy"]) > 0.7
    rows = digits.held_out
    assert program.result("joined") == f"{rows} {rows}"
    assert program.result("schema") == "SampleID:STRING ip1:ARRAY<FLOAT> label:ARRAY<FLOAT>"
    assert program.result("group") == "3"  # or more: jobs have the caller's group

    # Errors have fields, and a Config is as it was.
    assert re.fullmatch(
        rf"code=invalid_argument rank=-1 lost=false host=false {re.escape(wrong)}:\d+:.*many.*",
        program.result("wrong"),
    )
    kept = program.result("kept")
    assert kept.startswith("code=invalid_argument") and kept.endswith("at least 1 1"), kept

    # The secret is in the Python process's environment alone.
    (driver,) = drivers()
    secret = secret_of(driver)
    assert len(secret) == 64
    assert not any(secret in line for line in processes_with(program.mark))

    # A trainer is killed; then the thread that trains is interrupted.
    assert program.result("strike") == "a trainer"
    program.await_iterations()
    os.kill(min(marked_processes("--control-fd")), signal.SIGKILL)
    killed = program.result("killed")
    assert re.match(r"code=unavailable rank=[01] lost=true host=true rank [01] ", killed), killed
    assert program.result("interrupted") == "InterruptedException"

    # The JVM is killed while it trains.
    program.await_(lambda: "strike: the JVM" in program.said())
    program.await_iterations()
    os.kill(program.process.pid, signal.SIGKILL)
    assert program.end() == -signal.SIGKILL
    assert wait_until(lambda: not drivers(), 5)
    check_nothing_left(program.mark, program.temporary, shared)
    assert secret not in program.said() + program.complained()


def test_a_java_program(submit, digits):
    solver = digits.solver("cos", max_iter=40, test_interval=None, test_iter=None)
    model, table = f"file:{digits.folder}/java.caffemodel", digits.table("raw", "test")
    program = submit("programs.DigitsInJava", solver, model, table)
    assert float(program.result("accuracy")) > 0.7
    assert program.result("joined") == "50 50 500"
    assert program.result("refused").startswith("internal ")
    assert program.end() == 0
    assert not drivers()
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
    assert not drivers()


def test_ctrl_c_ends_the_jvm_and_its_python(submit, digits, endless):
    shared = set(os.listdir("/dev/shm"))
    flags = ("-train", "-conf", endless, "-model", f"file:{digits.folder}/endless.caffemodel")
    program = submit(MAIN, *flags, "-clusterSize", "2")
    program.await_iterations()
    os.killpg(program.process.pid, signal.SIGINT)
    assert program.end() == 130
    check_nothing_left(program.mark, program.temporary, shared)
    assert "Traceback" not in program.complained()


@pytest.mark.parametrize(
    ("python", "told"),
    [
        ('#!/bin/sh\nexec {python} -I -S "$@"\n', "has no package hearth: install hearth-spark"),
        ("#!/bin/sh\nexit 3\n", "ended with status 3 before it began"),
        (None, "cannot be started"),
    ],
)
def test_a_python_that_cannot_serve_is_told_in_one_line(submit, digits, tmp_path, python, told):
    program = tmp_path / "python"
    if python is not None:
        program.write_text(python.format(python=sys.executable))
        program.chmod(0o755)
    submitted = submit(
        MAIN, "-train", "-conf", digits.solver("cos"), "-model", "m", PYSPARK_PYTHON=str(program)
    )
    assert submitted.end() == 1
    (line,) = [text for text in submitted.complained().splitlines() if "HearthException" in text]
    assert told in line and str(program) in line
    assert "at hearth." not in submitted.complained()
