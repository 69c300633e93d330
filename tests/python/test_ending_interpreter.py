"""A program ends normally while its daemon threads are blocked in the core."""

from __future__ import annotations

import subprocess
import sys

import pytest

# The thread makes short calls, so that it requests the GIL while Python shuts down.
PROGRAM = """
import threading, time
{setup}
calls = 0

def again():
    global calls
    while True:
        try:
            {call}
        except TimeoutError:
            pass
        calls += 1

threading.Thread(target=again, daemon=True).start()
while calls < 5:
    time.sleep(0.001)
print("ends")
"""

MEMBER = """
from hearth.native._core import Coordinator, Group, Member, new_token
token = new_token()
coordinator = Coordinator(world=1, token=token)
member = Member(host="127.0.0.1", port=coordinator.port(), token=token, rank=0, world=1)
"""

CHANNEL = """
import os, socket
from hearth.cluster.channel import Channel
ours, theirs = socket.socketpair()
frame = (7).to_bytes(4, "big") + b'{"a":1}'
if os.fork() == 0:
    ours.close()
    try:
        while True:
            theirs.sendall(frame * 50)
    except OSError:
        os._exit(0)
theirs.close()
channel = Channel(ours)
"""

# A net with a Python layer that the program's main module defines.
NET = """
import tempfile
from hearth import caffe
caffe.init_log(3)

class One(caffe.Layer):
    def reshape(self, bottom, top):
        top[0].reshape(1)

    def forward(self, bottom, top):
        top[0].data[...] = 1

with tempfile.NamedTemporaryFile("w") as file:
    file.write('layer { name: "one" type: "Python" top: "one" '
               'python_param { module: "__main__" layer: "One" } }')
    file.flush()
    net = caffe.Net(file.name, caffe.TEST)
"""

CORE = "from hearth.native._core import "
RING = CORE + "RingReader, RingWriter; reader = RingReader(1 << 20); "
CALLS = {
    "a message": (CHANNEL, "channel.receive()"),
    "the driver's events": (MEMBER, "coordinator.next_event(0.001)"),
    "the driver's messages": (MEMBER + "member.reserve('{}')", "member.next_message(0.001)"),
    "what all ranks say": (
        MEMBER + "member.reserve('{}')",
        "member.all_gather('step', '1', 5.0)",
    ),
    "a ledger": (CORE + "FeedLedger; ledger = FeedLedger(); ledger.open('a')", "ledger.safe('a')"),
    "a ring's rows": (RING + "writer = RingWriter.attach(*reader.fds())", "reader.next(0.001)"),
    "examples": (
        CORE + "TfRecordReader",
        "TfRecordReader(b'', 'no file').read([('a', 'bytes')], 1)",
    ),
    "ranks": (
        MEMBER + "member.reserve('{}'); group = Group.connect(member)",
        "group.barrier(5.0)",
    ),
    "a net": (NET, "net.forward()"),
}


@pytest.mark.parametrize(("setup", "call"), CALLS.values(), ids=CALLS.keys())
def test_a_daemon_thread_in_the_core_does_not_abort_the_end(setup: str, call: str) -> None:
    for _ in range(3):
        command = [sys.executable, "-c", PROGRAM.format(setup=setup, call=call)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (0, "ends\n"), done.stderr
