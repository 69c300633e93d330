"""Nodes and feed tasks log no token of any cluster generation."""

import os
import signal
import time
from base64 import b64encode
from pathlib import Path

import pytest

from hearth.cluster.errors import NodeError
from tensorflowonspark import TFCluster

SPARK = TFCluster.InputMode.SPARK


def executor_logs():
    """Standard output and error of the session's executors, including ended ones."""
    work = Path(os.environ["SPARK_HOME"], "work")
    return {log: log.read_bytes() for log in work.glob("app-*/*/std*")}


def forms(token):
    """The forms of a token in a log: text, bytes, and the base64 of both at any offset."""
    raw = bytes.fromhex(token)
    words = [token.encode(), token.upper().encode(), raw]
    for text in (raw, token.encode()):
        # Base64 encodes groups of three bytes, so there are three alignments; only full groups
        # count.
        words += [b64encode(text[skip : skip + 27]) for skip in range(3)]
    return words


def dies_in_its_later_lives(arguments, ctx):
    # One write(): print() could be split by the executor's own log lines.
    os.write(1, f"a word of life {ctx.restart_count}\n".encode())
    feed, given = ctx.get_data_feed(), 0
    while not feed.should_stop():
        given += len(feed.next_batch(10))
        if ctx.restart_count and given >= 20:
            os.kill(os.getpid(), signal.SIGKILL)


def test_no_log_of_an_executor_holds_a_token_of_any_generation(sc, notes, monkeypatch):
    from hearth.native import _core

    tokens, made = [], _core.new_token

    def note():
        tokens.append(str(made()))
        return tokens[-1]

    monkeypatch.setattr(_core, "new_token", note)
    nodes = TFCluster.run(sc, dies_in_its_later_lives, {}, 2, 0, input_mode=SPARK, restart=True)
    os.kill(nodes.cluster_info[0]["executor_pid"], signal.SIGKILL)
    with pytest.raises(NodeError, match="was killed by SIGKILL"):
        nodes.train(sc.parallelize(range(400), 8), num_epochs=1)
    with pytest.raises(NodeError, match="was killed by SIGKILL"):
        nodes.shutdown()
    # After a kill without a checkpoint, the cluster restarts only once more.
    assert [len(token) for token in tokens] == [64] * 3  # three generations
    deadline = time.monotonic() + 60
    while not any(b"a word of life 1" in log for log in executor_logs().values()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    words = [word for token in tokens for word in forms(token)]
    found = [str(file) for file, log in executor_logs().items() if any(w in log for w in words)]
    assert found == []
