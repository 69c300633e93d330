"""A node's process before its main function runs."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hearth.cluster.channel import Channel
from hearth.cluster.node.context import NodeContext


@contextmanager
def _node(program: bytes, folder: str, writing: int) -> Iterator[Channel]:
    """Starts a node's process and sends it `program`; yields the channel to it. The process
    searches `folder` for modules first, and inherits the descriptor `writing`, which is closed
    here.
    """
    ours, theirs = socket.socketpair()
    reports, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    port = socket.create_server(("127.0.0.1", 0))
    channel = Channel(ours)
    with theirs, port, reports:
        fds = (theirs.fileno(), port.fileno(), reports.fileno())
        node = subprocess.Popen(
            [sys.executable, "-m", "hearth.cluster.node.program", *map(str, fds)],
            pass_fds=(*fds, writing),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        os.close(writing)
        try:
            path = [folder, *sys.path]
            channel.send({"bytes": len(program), "sys_path": path}, data=program)
            yield channel
        finally:
            node.kill()
            node.wait()
            channel.close()


def test_a_node_imports_common_modules_while_it_waits(tmp_path):
    reading, writing = os.pipe()
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text("")
    (tmp_path / "pyspark" / "cloudpickle.py").write_text(
        f"import os\nos.write({writing}, b'imported')\nos.close({writing})\n"
    )
    with _node(b"-", str(tmp_path), writing), open(reading, "rb") as pipe:
        assert pipe.read() == b"imported"  # although no program was started


def test_garbage_is_collected_in_the_main_function_but_not_while_modules_are_imported(
    tmp_path, monkeypatch
):
    reading, writing = os.pipe()
    (tmp_path / "collecting_program.py").write_text(
        "import gc, os\n"
        "while_imported = gc.isenabled()\n"
        "def main(fd, ctx):\n"
        "    is_frozen = gc.get_freeze_count() > 0\n"
        "    os.write(fd, f'{while_imported} {gc.isenabled()} {is_frozen}'.encode())\n"
        "    os.close(fd)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import collecting_program

    program = pickle.dumps((collecting_program.main, writing, NodeContext))
    context = {
        "node_id": 0,
        "role": "worker",
        "index": 0,
        "cluster_spec": {"worker": ["127.0.0.1:1"]},
        "default_fs": "file://",
        "working_dir": "/",
    }
    go = {"environment": {}, "queues": [], "datasets": [], "release_port": True}
    with _node(program, str(tmp_path), writing) as channel, open(reading, "rb") as pipe:
        channel.send({"op": "go", **go, "context": context})
        assert pipe.read() == b"False True True"
