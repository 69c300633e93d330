"""`make soak-hadoop`: files and trainings on a secure Hadoop, with a KDC on this machine.

pytest does not collect this file by itself. It is skipped if a KDC cannot be started: `apt-get
install krb5-kdc krb5-admin-server krb5-user curl`, whose services need not run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import hadoop_jars
import pytest
import test_hadoop_tensorflow
from hadoop_libhdfs import libhdfs
from kerberos_cluster import REALM, USER, KerberosCluster, secure_hadoop
from test_hadoop_files import conformance, in_process
from yarn_programs import GOAL, accuracy, content, names, run_program, spark_submit

from hearth import caffeonspark

NO_TICKETS = {"KRB5CCNAME": "FILE:/nowhere"}


@pytest.fixture(scope="session")
def hadoop(tmp_path_factory) -> Iterator[KerberosCluster]:
    """Replaces the cluster of the other tests; the user has a ticket."""
    with secure_hadoop(tmp_path_factory.mktemp("conf")) as cluster:
        yield cluster


@pytest.fixture(params=["webhdfs", "libhdfs"])
def client(hadoop, request) -> dict[str, str]:
    """The environment variables that select one of the core's HDFS clients."""
    if request.param == "webhdfs":
        return {"HEARTH_HDFS": "webhdfs"}
    library = libhdfs(Path(hadoop.environment()["JAVA_HOME"]))
    if library is None:
        pytest.skip("libhdfs is built of a crate, which cargo fetches, with a JDK's headers")
    return {
        "HEARTH_HDFS": "libhdfs",
        "HEARTH_LIBHDFS": str(library),
        "CLASSPATH": f"{os.environ['HADOOP_CONF_DIR']}:{hadoop_jars.jars()}/*",
        "LIBHDFS_OPTS": " ".join(["-Xmx128m -XX:TieredStopAtLevel=1", *hadoop.java_options]),
    }


@pytest.fixture(scope="session")
def tokens(hadoop) -> tuple[str, str]:
    """Two files with a delegation token each; the second token is cancelled."""
    files = tuple(str(hadoop.krb5 / f"{name}.token") for name in ("valid", "cancelled"))
    for file in files:
        hadoop.run("hdfs", "fetchdt", "--renewer", "yarn", file)
    hadoop.run("hdfs", "fetchdt", "--cancel", files[1])
    return files


def last_line(program: str, client: dict[str, str], **variables: str) -> str:
    """Runs a program with the core's bindings; returns the last line of its output or error."""
    return in_process(program, **client, **variables).strip().splitlines()[-1]


def test_conforms_with_a_ticket(hadoop, client):
    output = conformance(f"hdfs:///user/{USER}/{client['HEARTH_HDFS']}", client)
    assert "[  PASSED  ] 14 tests." in output


def test_reads_and_writes_with_a_token_alone(hadoop, client, tokens):
    uri = f"{hadoop.uri}/user/{USER}/by_token"
    program = f"core.write_file('{uri}', b'x' * 3_000_000)\nprint(len(core.read_file('{uri}')))"
    variables = {"HADOOP_TOKEN_FILE_LOCATION": tokens[0], **NO_TICKETS}
    said = in_process(program, **client, **variables)
    assert "3000000" in said.splitlines(), said


def test_without_a_ticket_the_error_names_the_remedy(hadoop, client):
    said = last_line("core.stat_file('hdfs:///user')", client, **NO_TICKETS)
    assert said.startswith(
        "hearth.errors.PermissionDeniedError: cannot inspect hdfs:///user as the owner of the "
    )
    assert "kinit" in said, said


def test_a_cancelled_token_is_named(hadoop, client, tokens):
    variables = {"HADOOP_TOKEN_FILE_LOCATION": tokens[1], **NO_TICKETS}
    said = last_line("core.stat_file('hdfs:///user')", client, **variables)
    assert said.startswith("hearth.errors.PermissionDeniedError: cannot inspect hdfs:///user"), said
    assert "the delegation token has expired, was cancelled" in said
    assert "max-lifetime" in said


def test_files_of_another_user_are_not_written(hadoop, client):
    said = last_line("core.write_file('hdfs:///theirs', b'x')", client)
    assert (
        said.startswith("hearth.errors.PermissionDeniedError: cannot ") and f"user={USER}" in said
    ), said


def test_tensorflow_uses_the_ticket(hadoop):
    test_hadoop_tensorflow.test_gfile_records_checkpoints_models_and_summaries(hadoop)


PROGRAM = str(Path(caffeonspark.__file__).with_name("__main__.py"))
KEYTAB = ("--principal", f"{USER}@{REALM}", "--keytab")


def trained(hadoop, digits, folder: str, *options: str, **variables: str) -> None:
    """Trains and tests by spark-submit; the model and the means are in HDFS."""
    solver = digits.solver(max_iter=200, snapshot=100, snapshot_prefix='"lenet"')
    net = Path(solver).with_name("lenet_cos_train_test.prototxt")
    done = run_program(
        spark_submit(), "--master", "yarn", "--files", f"{solver},{net}", *options, PROGRAM,
        "-train", "-test", "-conf", Path(solver).name, "-clusterSize", "2",
        "-model", f"{folder}/lenet.caffemodel", "-output", f"{folder}.txt",
        folder=digits.folder, **variables,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-3000:]
    assert "lenet_iter_100.hearth.json" in names(hadoop, folder)
    assert accuracy(content(hadoop, f"{folder}.txt").decode()) > GOAL
    logs = (hadoop.folder.glob(f"node*/containers/*/*/{name}") for name in ("stdout", "stderr"))
    said += "".join(log.read_text(errors="replace") for found in logs for log in found)
    assert "100 % of them on their own hosts" in said  # the ranks read the rows, not Spark
    assert "Spark reads " not in said


def test_a_training_with_a_ticket(hadoop, digits):
    trained(hadoop, digits, "ticket")


def test_a_training_with_a_keytab(hadoop, digits):
    trained(hadoop, digits, "keytab", *KEYTAB, str(hadoop.keytab(USER)), **NO_TICKETS)


def test_a_training_in_cluster_mode(hadoop, digits):
    options = ("--deploy-mode", "cluster", *KEYTAB, str(hadoop.keytab(USER)))
    trained(hadoop, digits, "cluster", *options, **NO_TICKETS)


def test_a_training_without_a_ticket_names_kinit(hadoop, digits):
    flags = ["-train", "-conf", digits.solver(), "-clusterSize", "2", "-model", "none/m.caffemodel"]
    done = run_program(
        spark_submit(), "--master", "yarn", PROGRAM, *flags, folder=digits.folder, **NO_TICKETS
    )
    said = (done.stdout + done.stderr).splitlines()
    assert done.returncode != 0
    assert any(line.startswith("caffeonspark: -model ") and "kinit" in line for line in said), said
