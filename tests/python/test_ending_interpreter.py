"""A program that ends while its daemon threads wait in the core ends as it meant to."""

import subprocess
import sys

PROGRAM = """
import os, socket, threading, time
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

def receive():
    while True:
        channel.receive()

threading.Thread(target=receive, daemon=True).start()
time.sleep(0.2)
print("ends")
"""


def test_a_daemon_thread_that_receives_messages_does_not_abort_the_end() -> None:
    for _ in range(3):
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "ends\n"), done.stderr
