"""A node's process before the cluster is complete."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import closing

from hearth.cluster.channel import Channel


def test_a_node_imports_common_modules_while_it_waits(tmp_path):
    reading, writing = os.pipe()
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text("")
    (tmp_path / "pyspark" / "cloudpickle.py").write_text(
        f"import os\nos.write({writing}, b'imported')\nos.close({writing})\n"
    )
    ours, theirs = socket.socketpair()
    reports, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    port = socket.create_server(("127.0.0.1", 0))
    with theirs, closing(Channel(ours)) as channel, port, reports:
        fds = (theirs.fileno(), port.fileno(), reports.fileno())
        node = subprocess.Popen(
            [sys.executable, "-m", "hearth.cluster.node.program", *map(str, fds)],
            pass_fds=(*fds, writing),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        os.close(writing)
        try:
            path = [str(tmp_path), *sys.path]
            channel.send({"bytes": 1, "sys_path": path}, data=b"-")
            assert os.read(reading, 100) == b"imported"  # but has not started its program
        finally:
            os.close(reading)
            node.kill()
            node.wait()
