"""The driver names a rank that never calls TensorFlow's collective ops, and stops waiting."""

import logging
import os
import threading

import pytest

from hearth.cluster.errors import NodeError
from tensorflowonspark import TFCluster

from conftest import no_node_left  # isort: skip


def one_never_comes(notes, ctx):
    import tensorflow as tf

    import hearth.tensorflow as hvt

    notes.write(ctx, None)
    for index in range(2):  # loading TensorFlow may take a rank more than init()'s 10 s
        notes.wait_for(f"worker{index}")
    os.environ["HEARTH_STALL_SECONDS"] = "0.75"
    hvt.init(timeout_s=10)
    hvt.allreduce(tf.zeros([1]))
    if hvt.rank() == 1:
        threading.Event().wait(60)
    hvt.allreduce(tf.zeros([1000]), name="dense/kernel")


def test_a_rank_that_never_calls_a_collective_is_named_in_the_driver(sc, notes, caplog):
    caplog.set_level(logging.WARNING, "hearth.cluster.watch")
    cluster = TFCluster.run(sc, one_never_comes, notes, 2, 0)
    with pytest.raises(NodeError, match=r"rank 1 on host \S+ had not arrived before the deadline"):
        cluster.shutdown()
    lines = [record.getMessage() for record in caplog.records]
    assert any("in all-reduce 'dense/kernel' of 4000 bytes" in text for text in lines), lines
    assert no_node_left()
