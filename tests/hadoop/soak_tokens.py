"""`make soak-hadoop`: programs that outlive their delegation tokens continue with newer ones.

Here HDFS accepts a token for one minute without renewal, instead of a day, and for a minute and a
half if YARN renews it, instead of a week. pytest does not collect this file, like soak_kerberos.py.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kerberos_cluster import REALM, USER, KerberosCluster, secure_hadoop
from yarn_programs import GOAL, accuracy, content, names, run_program, spark_submit

from hearth import caffeonspark

TOKEN_S = 60.0
PROGRAM = str(Path(caffeonspark.__file__).with_name("__main__.py"))
NEW = "received new delegation tokens"

NODES = """
import time
from hearth import cluster
from hearth.spark import session
from hearth.tensorflowonspark import dfutil
def beat(args, ctx):
    from hearth.native._core import write_file
    for number in range(args["beats"]):
        write_file(f"{args['folder']}/{ctx.index}-{number:02}", b"x" * 100_000)
        time.sleep(5)
spark = session.start("tokens")
args = {"folder": "FOLDER", "beats": BEATS}
with cluster.run(spark, beat, args, nodes=2):
    pass
dfutil.saveAsTFRecords(spark.range(0, 100, 1, 2), "FOLDER/rows")
assert dfutil.loadTFRecords(spark, "FOLDER/rows").count() == 100
session.stop(spark)
"""


@pytest.fixture(scope="session")
def hadoop(tmp_path_factory) -> Iterator[KerberosCluster]:
    """Replaces the cluster of the other tests."""
    with secure_hadoop(tmp_path_factory.mktemp("conf"), token_s=TOKEN_S) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def webhdfs(monkeypatch):
    monkeypatch.setenv("HEARTH_HDFS", "webhdfs")


def options(hadoop) -> tuple[str, ...]:
    look = ("--conf", "spark.hearth.tokenLook=3s")
    return ("--principal", f"{USER}@{REALM}", "--keytab", str(hadoop.keytab(USER)), *look)


def said_by(hadoop, program) -> str:
    """The last lines of the program's and its containers' output, without Spark's log."""

    def last(text: str) -> str:
        return "\n".join(line for line in text.splitlines() if " INFO " not in line)[-5000:]

    return last(program.stdout + program.stderr) + last(containers_logs(hadoop, program))


def containers_logs(hadoop, program) -> str:
    """The containers' logs of the application that the program started."""
    said = program.stdout + program.stderr
    applications = re.findall(r"application_\d+_\d+", said)
    logs = hadoop.folder.glob(f"node*/containers/{applications[-1]}/*/std*") if applications else ()
    return "".join(log.read_text(errors="replace") for log in logs)


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_a_training_outlives_its_tokens(hadoop, digits, mode):
    solver = digits.solver(max_iter=12_000, snapshot=1000, snapshot_prefix='"lenet"')
    net = Path(solver).with_name("lenet_cos_train_test.prototxt")
    started = time.monotonic()
    done = run_program(
        spark_submit(), "--master", "yarn", "--deploy-mode", mode, *options(hadoop),
        "--files", f"{solver},{net}", PROGRAM, "-train", "-test", "-conf", Path(solver).name,
        "-clusterSize", "2", "-spill", "off", "-maxRestarts", "0",
        "-model", f"{mode}/lenet.caffemodel", "-output", f"{mode}.txt",
        folder=digits.folder, KRB5CCNAME="FILE:/nowhere",
    )  # fmt: skip
    assert done.returncode == 0, said_by(hadoop, done)
    assert time.monotonic() - started > 2 * TOKEN_S, "it was too short to show anything"
    assert "lenet_iter_12000.hearth.json" in names(hadoop, mode)
    assert accuracy(content(hadoop, f"{mode}.txt").decode()) > GOAL
    assert containers_logs(hadoop, done).count(NEW) >= 2


def test_nodes_and_their_session_outlive_their_tokens(hadoop, tmp_path):
    program = tmp_path / "nodes.py"
    folder = f"{hadoop.uri}/user/{USER}/beats"
    program.write_text(NODES.replace("FOLDER", folder).replace("BEATS", "30"))
    done = run_program(
        spark_submit(), "--master", "yarn", *options(hadoop), str(program),
        folder=tmp_path, KRB5CCNAME="FILE:/nowhere",
    )  # fmt: skip
    assert done.returncode == 0, said_by(hadoop, done)
    assert len(names(hadoop, "beats")) == 60 + len(["rows"])
    assert containers_logs(hadoop, done).count(NEW) >= 2
