"""Object stores that are slow, busy or disconnected, and writers that are killed; run.py runs this.

HEARTH_TEST_STORE: a URI in the store. HEARTH_TEST_SERVER: host:port of its server, as in the
environment variables that configure the libraries.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fault_proxy import FaultProxy

from hearth import HearthError, data
from hearth.checkpoints.checkpoint_folder import CheckpointFolder
from hearth.checkpoints.seal import Part
from hearth.files.library_files import LibraryFiles

BASE, SERVER = os.environ["HEARTH_TEST_STORE"], os.environ["HEARTH_TEST_SERVER"]
MEGABYTES = 25 << 20  # several parts
# A busy store refuses every n-th request; rarely on Azure, whose library waits 15 s to retry.
BUSY_EVERY = 40 if BASE.startswith("abfs") else 4
# The size of a file that is sent in parts, and the mark of a part's request: Azure's library sends
# blocks of 50 MB.
WRITTEN_MB, A_PART = (60, "comp=block&") if BASE.startswith("abfs") else (25, "partNumber=2")


@pytest.fixture
def proxy(monkeypatch):
    """A proxy in front of the store, for this test's process and its children."""
    proxy = FaultProxy(int(SERVER.rpartition(":")[2]))
    for name, value in os.environ.items():
        if SERVER in value and name != "HEARTH_TEST_SERVER":
            monkeypatch.setenv(name, value.replace(SERVER, f"127.0.0.1:{proxy.port}"))
    _forget()
    yield proxy
    proxy.fails = proxy.cuts = lambda number: False
    proxy.close()
    _forget()


def _forget():
    """Clears fsspec's cached file systems, which remember the server."""
    from fsspec.spec import AbstractFileSystem

    kinds = [AbstractFileSystem]
    for kind in kinds:
        kind.clear_instance_cache()
        kinds += kind.__subclasses__()


@pytest.fixture
def uri():
    return f"{BASE}/{uuid.uuid4()}"


def save(folder: CheckpointFolder, step: int, content: bytes) -> None:
    draft = folder.begin(step)
    with folder.writing(draft):
        with draft.file("model.pt") as file:
            file.write(content)
        seal = draft.seal({"model": Part(step, ("model.pt",))}, world=1)
    folder.remove_older(2, seal.number)


def newest(uri: str) -> tuple[int, bytes, list[str]]:
    reports: list[str] = []
    found = CheckpointFolder(uri, reports.append).newest()
    assert found is not None
    try:
        return found.seal.step, found.files["model.pt"].read(), reports
    finally:
        found.close()


def test_a_large_file_is_sent_in_parts(proxy, uri, tmp_path):
    content = os.urandom(MEGABYTES)
    (tmp_path / "model").write_bytes(content)
    files = LibraryFiles()
    files.store([str(tmp_path / "model")], uri)
    writes = [path for method, path in proxy.requests if method in ("PUT", "POST", "PATCH")]
    words = ("partNumber", "upload", "comp=block")
    sent = sum(any(word in path for word in words) for path in writes)
    # adlfs sends blocks of 50 MB, and then a list of them.
    assert sent > (1 if BASE.startswith("abfs") else 2)
    files.fetch(f"{uri}/model", str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == content
    assert files.names(uri) == ["model"]


@pytest.mark.parametrize("fault", ["busy", "slow", "cut off"])
def test_checkpoints_and_rows_pass_through_a_store_with_faults(proxy, uri, tmp_path, fault):
    if fault == "busy":
        proxy.fails = lambda number: number % BUSY_EVERY == BUSY_EVERY - 1
    elif fault == "slow":
        proxy.delay_s = 0.1
    else:
        proxy.cuts = lambda number: number % 5 == 4
    folder = CheckpointFolder(f"{uri}/run", print)
    for step in (1, 2, 3):
        save(folder, step, b"%d" % step * 1_000_000)
    assert newest(f"{uri}/run") == (3, b"3" * 1_000_000, [])
    for i in range(3):
        pq.write_table(pa.table({"id": range(40 * i, 40 * i + 40)}), tmp_path / f"{i}.parquet")
    LibraryFiles().store([str(tmp_path / f"{i}.parquet") for i in range(3)], f"{uri}/rows")
    source = data.parquet(f"{uri}/rows").pin()
    batches = itertools.chain.from_iterable(map(source.read, source.splits()))
    ids = [i for batch in batches for i in batch.column("id").to_pylist()]
    assert sorted(ids) == list(range(120))
    assert fault == "slow" or proxy.failed > 0


def test_a_store_that_stays_busy_is_an_error_that_may_pass(proxy, uri):
    LibraryFiles().write(f"{uri}/note", b"1")
    proxy.fails = lambda number: True
    with pytest.raises(HearthError, match=f"{uri}/note") as found:
        LibraryFiles().read(f"{uri}/note")
    assert found.value.code == "unavailable"
    assert "\n" not in str(found.value)


WRITER = """
import sys
from hearth.checkpoints.checkpoint_folder import CheckpointFolder
draft = CheckpointFolder(sys.argv[1], print).begin(2)
with draft.file("model.pt") as file:
    for _ in range(int(sys.argv[2])):
        file.write(bytes(1 << 20))
    print("written", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("moment", ["in a part", "before the seal"])
def test_a_writer_that_is_killed_leaves_the_older_checkpoint(proxy, uri, moment):
    save(CheckpointFolder(uri, print), 1, b"first")
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, uri, str(WRITTEN_MB)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )

    def kill(method, path):
        if method == "PUT" and A_PART in path:
            child.send_signal(signal.SIGKILL)

    if moment == "in a part":
        proxy.on_request = kill
    assert child.stdout is not None
    if moment == "before the seal":
        assert child.stdout.readline() == b"written\n"
        child.send_signal(signal.SIGKILL)
    child.stdout.read()
    assert child.wait() == -signal.SIGKILL
    proxy.on_request = lambda method, path: None
    step, content, _ = newest(uri)
    assert (step, content) == (1, b"first")
    folder = CheckpointFolder(uri, print)
    save(folder, 2, b"second")
    assert newest(uri) == (2, b"second", [])
    assert len(folder._store.names(uri)) == 2  # the killed writer's files are removed
