"""Runs the suites of files, sources and checkpoints on object stores, and tests their faults.

`run.py [s3] [s3a] [gs] [abfs]`: `make test-stores` creates the environment and runs all that have a
server: moto for s3 and s3a, fake-gcs-server (GCS_SERVER: its program), Azurite (AZURITE: its
command). Prints what it tried.
"""

from __future__ import annotations

import logging
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from urllib.request import Request, urlopen

HERE = Path(__file__).parent
SUITES = ["test_library_files.py", "test_sources_conformance.py", "test_checkpoint_folder.py"]
BUCKET = "hearth"


@contextmanager
def s3() -> Iterator[tuple[str, dict[str, str]]]:
    """A running S3 server: its host:port, and the variables by which libraries find it."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        at = f"{host}:{port}"
        urlopen(Request(f"http://{at}/{BUCKET}", method="PUT")).close()
        print(f"S3: moto {version('moto')}", flush=True)
        yield (
            at,
            {
                "AWS_ENDPOINT_URL": f"http://{at}",
                "AWS_ACCESS_KEY_ID": "key",
                "AWS_SECRET_ACCESS_KEY": "secret",
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_EC2_METADATA_DISABLED": "true",
            },
        )
    finally:
        server.stop()


@contextmanager
def gs() -> Iterator[tuple[str, dict[str, str]]]:
    """The same for Google Cloud Storage."""
    at = f"127.0.0.1:{_free_port()}"
    options = ["-scheme", "http", "-host", "127.0.0.1", "-port", at.rpartition(":")[2]]
    command = [os.environ["GCS_SERVER"], *options, "-backend", "memory", "-public-host", at]
    with _running(command, at):
        body = f'{{"name": "{BUCKET}"}}'.encode()
        made = Request(f"http://{at}/storage/v1/b?project=test", body, method="POST")
        made.add_header("Content-Type", "application/json")
        urlopen(made).close()
        print(f"GCS: {os.environ['GCS_SERVER']}", flush=True)
        yield (
            at,
            {
                "STORAGE_EMULATOR_HOST": f"http://{at}",
                "CLOUD_STORAGE_EMULATOR_ENDPOINT": f"http://{at}",
            },
        )


@contextmanager
def abfs() -> Iterator[tuple[str, dict[str, str]]]:
    """The same for Azure."""
    from azure.storage.blob import BlobServiceClient

    at = f"127.0.0.1:{_free_port()}"
    folder = tempfile.mkdtemp(prefix="hearth-azurite-")
    command = [
        *shlex.split(os.environ["AZURITE"]),
        "--blobHost",
        "127.0.0.1",
        "--skipApiVersionCheck",
    ]
    command += ["--blobPort", at.rpartition(":")[2], "--location", folder, "--silent"]
    # The default account and key of every Azurite.
    key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    connection = (
        f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={key};"
        f"BlobEndpoint=http://{at}/devstoreaccount1;"
    )
    with _running(command, at):
        BlobServiceClient.from_connection_string(connection).create_container(BUCKET)
        print(f"Azure: {os.environ['AZURITE']}", flush=True)
        yield at, {"AZURE_STORAGE_CONNECTION_STRING": connection}


SERVERS = {"s3": s3, "s3a": s3, "gs": gs, "abfs": abfs}


@contextmanager
def _running(command: list[str], at: str) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    host, _, port = at.rpartition(":")
    try:
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection((host, int(port))).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"{command[0]} did not start") from None
                time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    asked = sys.argv[1:] or ["s3", "s3a"]
    if not sys.argv[1:]:
        asked += [
            kind
            for kind, name in (("gs", "GCS_SERVER"), ("abfs", "AZURITE"))
            if os.environ.get(name)
        ]
    failed = []
    for kind in asked:
        with SERVERS[kind]() as (at, found):
            where = f"gs://anonymous@{BUCKET}" if kind == "gs" else f"{kind}://{BUCKET}"
            env = {**os.environ, **found, "HEARTH_TEST_STORE": where, "HEARTH_TEST_SERVER": at}
            pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
            chosen = "store and not adl"  # fixtures' parameters; adl lacks its package
            if kind == "gs":  # fake-gcs-server drops spaces in names
                chosen += " and not files_round_trip"
            suites = [str(HERE.parent / "python" / name) for name in SUITES]
            commands = [[*pytest, "-k", chosen, *suites]]
            if kind != "gs":  # it also ends uploads whose state is queried
                commands.append([*pytest, str(HERE / "faults.py")])
            for command in commands:
                print(f"{kind}: {' '.join(command[2:])}", flush=True)
                if subprocess.run(command, env=env).returncode:
                    failed.append(kind)
    if failed:
        sys.exit(f"failed: {', '.join(dict.fromkeys(failed))}")


if __name__ == "__main__":
    main()
