"""Spark Connect as platforms offer it: through TLS with a token, to executors whose GPUs only nodes
hold. Spark's server has no TLS, so a proxy terminates it; a script simulates GPUs.

Server and client are separate processes: a Python process can have only one kind of session.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pyspark
import pytest
from standalone import GPU_DISCOVERY

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),  # half a minute on an idle machine
    pytest.mark.skipif(pyspark.__version__ < "4", reason="profiles of DataFrames need Spark 4.0"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate"),
]
TOKEN = "a-token-of-the-test"

# Starts two executors of three cores and two GPUs each, and a TLS proxy for the server's port.
SERVER = """
import asyncio, ssl, sys
from pyspark.sql import SparkSession

folder, token = sys.argv[1:]
builder = SparkSession.builder.master("local-cluster[2,3,1024]")
for key, value in {
    "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": "0",
    "spark.connect.authenticate.token": token,
    "spark.worker.resource.gpu.amount": "2",
    "spark.worker.resource.gpu.discoveryScript": f"{folder}/gpus.sh",
    "spark.executor.resource.gpu.amount": "2",
}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
service = getattr(spark._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
port = getattr(service, "MODULE$").localPort()

async def pump(source, target):
    try:
        while data := await source.read(1 << 16):
            target.write(data)
            await target.drain()
    finally:
        target.close()

async def passes_on(reader, writer):
    source, target = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.gather(pump(reader, target), pump(source, writer), return_exceptions=True)

async def serve():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/certificate.pem", f"{folder}/key.pem")
    context.set_alpn_protocols(["h2"])
    proxy = await asyncio.start_server(passes_on, "127.0.0.1", 0, ssl=context)
    print(proxy.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until the test is over

asyncio.run(serve())
spark.stop()
"""

CLIENT = """
import json, os, sys
from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests
from pyspark.sql import SparkSession
from hearth import HearthError, cluster

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
assert not hasattr(spark, "_jsc")
found = {}

def asking(cpus, gpus):
    request = TaskResourceRequests().cpus(cpus).resource("gpu", gpus)
    return ResourceProfileBuilder().require(request).build

def sees(_, ctx):
    return os.environ["CUDA_VISIBLE_DEVICES"]

def takes(_, ctx):
    feed, rows = ctx.get_data_feed(), 0
    while not feed.should_stop():
        rows += len(feed.next_batch(16))
    return os.environ["CUDA_VISIBLE_DEVICES"], rows

found["two"] = sorted(cluster.run(
    spark, sees, None, nodes=2, feeds=(), profile=asking(1, 2)).result())
spark.conf.set("spark.hearth.task.resource.gpu.amount", "1")
found["one"] = sorted(cluster.run(spark, sees, None, nodes=4, feeds=()).result())
spark.conf.unset("spark.hearth.task.resource.gpu.amount")
with cluster.run(spark, takes, None, nodes=2, profile=asking(2, 2)) as nodes:
    nodes.train(spark.range(100))
    gpus, rows = zip(*nodes.result())
found["fed"] = [sorted(gpus), sum(rows)]
try:
    cluster.run(spark, sees, None, nodes=2, feeds=(), profile=asking(1, 3), timeout_s=30)
except HearthError as error:
    found["three"] = str(error)
print("found " + json.dumps(found), flush=True)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The proxy's port, and the environment variables that make a client trust its certificate."""
    folder = tmp_path_factory.mktemp("connect")
    script = folder / "gpus.sh"
    script.write_text(GPU_DISCOVERY)
    script.chmod(0o755)
    certificate = folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
         "-keyout", str(folder / "key.pem"), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    # The server's workers run this Python only if configured.
    env = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", SERVER, str(folder), TOKEN]
    with subprocess.Popen(command, env=env, **pipes) as process:
        try:
            port = int(process.stdout.readline())
            yield port, {**os.environ, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(certificate)}
        finally:
            process.stdin.close()


def run(server, *command, token=TOKEN):
    port, env = server
    uri = f"sc://localhost:{port}/;use_ssl=true;token={token}"
    return subprocess.run(
        [sys.executable, *command, uri], env=env, capture_output=True, text=True, timeout=550
    )


def test_nodes_hold_the_resources_of_their_profile(server):
    done = run(server, "-c", CLIENT)
    assert done.returncode == 0, done.stdout + done.stderr[-8000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("found ")]
    found = json.loads(line.removeprefix("found "))
    assert found["two"] == ["4,5", "6,7"] == found["fed"][0]
    assert found["one"] == ["4", "5", "6", "7"]
    assert found["fed"][1] == 100
    assert "gpu" in found["three"] and "\n" not in found["three"]


def test_doctor_examines_the_executors(server):
    done = run(server, "-m", "hearth.doctor", "--remote")
    assert "2, on " in done.stdout, done.stdout + done.stderr[-8000:]


def test_another_token_is_an_error_in_a_line(server):
    done = run(server, "-m", "hearth.doctor", "--remote", token="another")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("hearth doctor: Spark at sc://localhost"), done.stderr
    assert "another" not in last and TOKEN not in last
