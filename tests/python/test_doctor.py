"""Findings of `hearth doctor`: each names a fault, its host and a remedy."""

from __future__ import annotations

import copy
import json
import socket
import struct
import threading

import pytest

from hearth.doctor import __main__ as doctor_main
from hearth.doctor import checks, host_facts
from hearth.doctor.__main__ import main, show
from hearth.doctor.cluster import Survey

EXECUTOR = {
    "executor": "1",
    "clock_ahead_s": 0.1,
    "driver_problem": None,
    "mesh_problem": None,
    "port_problems": {},
}


@pytest.fixture(scope="module")
def own():
    """This machine's facts, modified to have no fault."""
    found = json.loads(json.dumps(host_facts.facts()))
    found["folders"] = {"/data": {"free_mib": 1 << 20, "problem": None}}
    return {
        **found,
        "shm_mib": 1 << 20,
        "open_files": 1 << 20,
        "home": None,
        "user_problem": None,
        "gpus": None,
    }


@pytest.fixture
def survey(own):
    executors = [copy.deepcopy({**own, **EXECUTOR, "unreachable": {}, "host": h}) for h in "ab"]
    spark = {
        "version": "4.0.1", "master": "yarn", "gpus_of_a_task": None, "java": "17",
        "clock": ("driver", 7300),
        "file_system": "hdfs://nn:8020", "file_system_problem": None, "kerberos": False,
    }  # fmt: skip
    return Survey(own, executors, spark)


def of(survey, check):
    (found,) = [finding for finding in checks.judge(survey) if finding.check == check]
    return found


def test_a_cluster_in_order_has_no_advice(survey):
    found = checks.judge(survey)
    assert {finding.level for finding in found} == {"ok"}
    assert not any(finding.advice for finding in found)
    assert "2, on a, b" in of(survey, "executors").found


FAULTS = [
    ("Python", {"python": "3.9.2"}, "problem", "3.9.2 at b", "PYSPARK_PYTHON"),
    ("hearth", {"hearth": None}, "problem", "missing at b", "hearth pack"),
    ("hearth", {"native": "OSError: libjpeg.so.62"}, "problem", "libjpeg.so.62", "wheel"),
    ("packages", {"packages": {}}, "warning", "numpy", "same versions"),
    ("glibc", {"glibc": "2.17"}, "problem", "2.17 at b", "2.28"),
    ("glibc", {"glibc": None}, "problem", "another C library at b", "2.28"),
    ("open files", {"open_files": 1024}, "warning", "1024", "ulimit"),
    ("local folders", {"folders": {"/d": {"free_mib": 9, "problem": "Read-only file system"}}},
     "problem", "/d of b: Read-only", "spark.local.dir"),
    ("local folders", {"folders": {"/d": {"free_mib": 512, "problem": None}}},
     "warning", "/d of b: 0.5 GiB", "spark.local.dir"),
    ("home folder", {"home": "/root cannot be written"}, "warning", "/root", "executorEnv.HOME"),
    ("user", {"user_problem": "1000 has no name in /etc/passwd"}, "warning", "1000 has no name",
     "mounted file"),
    ("ports", {"port_problems": {"spark.hearth.feed.port": "port 7500: in use"}}, "problem",
     "spark.hearth.feed.port: port 7500: in use", "wider range"),
    ("shared memory", {"memfd": "Operation not permitted"}, "problem", "not permitted", "seccomp"),
    ("shared memory", {"shm_mib": 64}, "warning", "64", "emptyDir"),
    ("shared memory", {"shm_mib": None}, "warning", "None", "emptyDir"),
    ("driver's address", {"driver_problem": "Connection refused"}, "problem", "driver:7300",
     "coordinator.port"),
    ("between executors", {"unreachable": {"a (10.0.0.1:7400)": "No route to host"}}, "problem",
     "b to a (10.0.0.1:7400): No route", "mesh.port"),
    ("between executors", {"mesh_problem": "port 7400: Address already in use"}, "problem",
     "port 7400", "mesh.port"),
    ("clocks", {"clock_ahead_s": -400.0}, "warning", "b differs most", "NTP"),
    ("GPUs", {"gpus": {"names": ["H200"], "driver": "580", "problem": None, "torch": None}},
     "warning", "1 x H200", "spark.hearth.task.resource.gpu.amount"),
    ("GPUs", {"gpus": {"names": ["H200"], "driver": "470", "problem": None,
                       "torch": "this torch is built without CUDA"}},
     "problem", "without CUDA", "driver"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "facts", "level", "found", "advice"), FAULTS)
def test_a_fault_of_one_host_is_named(survey, check, facts, level, found, advice):
    if not facts.get("packages", True):
        facts = {"packages": {**survey.driver["packages"], "numpy": "1.0"}}
    survey.executors[1].update(facts)
    finding = of(survey, check)
    assert (finding.level, found in finding.found, advice in finding.advice) == (level, True, True)
    others = [each for each in checks.judge(survey) if each.check != check]
    assert {each.level for each in others} == {"ok"}


def test_faults_of_spark_and_hadoop_are_named(survey):
    survey.spark.update(version="3.3.0", file_system_problem="no ticket", kerberos=True)
    survey.spark["gpus_of_a_task"] = "1"
    survey.executors[0]["clock_ahead_s"] = 400
    levels = {finding.check: finding.level for finding in checks.judge(survey)}
    assert levels["Spark"] == "warning"
    assert levels["default file system"] == levels["GPUs"] == levels["clocks"] == "problem"


def test_a_client_of_spark_connect_that_executors_do_not_reach_is_a_warning(survey):
    survey.spark["connect"] = True
    assert of(survey, "driver's address").level == "ok"
    survey.executors[1]["driver_problem"] = "timed out"
    found = of(survey, "driver's address")
    assert found.level == "warning" and "timed out" in found.found
    assert "TorchCluster" in found.advice and "TFOS_SERVER_HOST" in found.advice


def test_a_connect_server_that_does_not_answer_ends_the_command(monkeypatch, capsys):
    pytest.importorskip("grpc")
    monkeypatch.setattr(doctor_main, "_SERVER_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:  # accepts, but never replies
        port = server.getsockname()[1]
        for _ in range(2):
            assert main(["--remote", f"sc://127.0.0.1:{port}/;token=secret"]) == 1
            server.close()  # then connections are refused
    said = capsys.readouterr().err
    assert said.count(f"connecting to sc://127.0.0.1:{port}/, for up to 0.2 s") == 2
    assert said.count("cannot be reached within 0.2 s: start it") == 2 and "secret" not in said


def test_executors_that_cannot_answer_are_a_problem(own, survey):
    broken = Survey(own, [], {**survey.spark, "executors_problem": "no Python there"})
    assert of(broken, "executors").level == "problem"


def test_facts_run_as_text_without_hearth(monkeypatch):
    """Like on executors; the file imports only the standard library."""
    from pathlib import Path

    source = Path(host_facts.__file__).read_text()
    assert "hearth." not in source.replace('"hearth.native._core"', "")
    found = {"__name__": "host_facts"}
    exec(compile(source, "host_facts.py", "exec"), found)
    assert json.loads(json.dumps(found["facts"]()))["python"]


def test_a_clock_is_compared_and_a_missing_answer_is_reported():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer(value):
            channel, _ = server.accept()
            with channel:
                channel.sendall(value)

        for value, expected in [(struct.pack("!d", 1e9), None), (b"", "closed")]:
            thread = threading.Thread(target=answer, args=(value,))
            thread.start()
            ahead, problem = host_facts.clock_ahead_s("127.0.0.1", port)
            thread.join()
            assert (ahead is None) == bool(expected)
            assert expected is None or expected in problem
    assert "refused" in host_facts.clock_ahead_s("127.0.0.1", port)[1]
    assert "refused" in host_facts.connect_problem("127.0.0.1", port)


def test_used_ports_are_skipped():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server, problem = host_facts.listen("127.0.0.1", [port])
        assert server is None and str(port) in problem
        server, problem = host_facts.listen("127.0.0.1", [port, 0])
        assert problem is None
        server.close()


def test_the_table_and_the_advice_are_printed(survey, capsys):
    survey.executors[1]["open_files"] = 99
    show(checks.judge(survey))
    out = capsys.readouterr().out
    assert "open files: raise the limit" in out and "no problem found" in out


@pytest.mark.parametrize("words", [["--conf", "a"], ["--tasks", "0"]])
def test_wrong_flags_are_refused(words, capsys):
    with pytest.raises(SystemExit):
        main(words)
    assert words[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "An error occurred while calling None.JavaSparkContext.\n"
            ": All masters are unresponsive\n"
            "\tat java.base/java.lang.Thread.run(Thread.java:840)\n",
            "All masters are unresponsive",
        ),
        (
            "An error occurred while calling None.JavaSparkContext.\n"
            ": java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n",
            "its master did not accept the application: check that it runs, and its address",
        ),
        (
            "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.",
            "its JVM ended while it started, with the message above: check --master and --conf",
        ),
    ],
)
def test_a_session_that_does_not_start_is_one_line(monkeypatch, capsys, text, line):
    def fails(given):
        raise RuntimeError(text)

    monkeypatch.setattr(doctor_main, "_examine", fails)
    assert doctor_main.main(["--master", "spark://h:7077"]) == 1
    said = capsys.readouterr().err
    assert said == f"hearth doctor: Spark at spark://h:7077: {line}\n"
