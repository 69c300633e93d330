"""A worker of TensorFlow's ring over gRPC, for bench/collective.py.

For each input line "bytes calls" it runs `calls` consecutive all-reduces of that many bytes of
float32, as MultiWorkerMirroredStrategy does on CPUs; worker 0 prints the milliseconds of one.
"""

from __future__ import annotations

import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf


def main() -> None:
    """Prints "ready" once all workers are connected; TF_CONFIG has their addresses."""
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)

    @tf.function
    def reduce(values: tf.Tensor) -> tf.Tensor:
        def on_replica(mine: tf.Tensor) -> tf.Tensor:
            with tf.device("/cpu:0"):
                mine = tf.identity(mine)  # the strategy asks for its device
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, mine)

        return strategy.run(on_replica, args=(values,))

    is_first = strategy.cluster_resolver.task_id == 0
    world = strategy.num_replicas_in_sync
    if is_first:
        print("ready", flush=True)
    for line in sys.stdin:
        size, calls = map(int, line.split())
        values = tf.ones(size // 4)
        if not bool(tf.reduce_all(reduce(values) == world)):
            raise RuntimeError("TensorFlow's ring gave a wrong sum")
        begun = time.perf_counter()
        for _ in range(calls):
            result = reduce(values)
        result.numpy()  # waits for background work
        if is_first:
            print((time.perf_counter() - begun) * 1e3 / calls, flush=True)


if __name__ == "__main__":
    main()
