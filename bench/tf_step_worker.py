"""A worker of bench/tf_steps.py: trains three dense layers of 2048 as requested on its input.

The first line has the kind of worker, its rank, the addresses of all workers and a folder for the
rendezvous. For each further line, {"contender", "rows", "steps"}, it prints {"ms": milliseconds of
a step}. It ends with its input.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WIDTH = 2048
LAYERS = 3
TIMEOUT_S = 60.0

Step = Callable[[Any], Any]


def strategy_step(job: dict[str, Any]) -> Callable[[str], Step]:
    """A tf_keras model under MultiWorkerMirroredStrategy.

    Its reductions use gRPC, or the collective if the job's kind is "strategy".
    """
    import tensorflow as tf
    import tf_keras as keras

    if job["kind"] == "strategy":
        import hearth.tensorflow as hvt

        hvt.init(place(job), TIMEOUT_S)
        hvt.use_for_collectives()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = keras.Sequential([keras.layers.Dense(WIDTH) for _ in range(LAYERS)])
        model.build((None, WIDTH))
        optimizer = keras.optimizers.SGD(1e-4)

    @tf.function
    def step(x: Any) -> Any:
        def replica(x: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(x) ** 2) / len(job["addresses"])
            found = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(found, model.trainable_variables, strict=True))
            return loss

        return strategy.run(replica, args=(x,))

    return lambda contender: step


def optimizer_step(job: dict[str, Any]) -> Callable[[str], Step]:
    """A Keras 3 model with a DistributedOptimizer.

    Its contenders are the types that it sends, and "alone": a plain optimizer without other ranks.
    """
    import keras
    import tensorflow as tf

    import hearth.tensorflow as hvt

    hvt.init(place(job), TIMEOUT_S)

    def make(contender: str) -> Step:
        model = keras.Sequential([keras.layers.Dense(WIDTH) for _ in range(LAYERS)])
        model.build((None, WIDTH))
        optimizer = keras.optimizers.SGD(1e-4)
        if contender != "alone":
            optimizer = hvt.DistributedOptimizer(optimizer, wire=contender)
        optimizer.build(model.trainable_variables)

        @tf.function
        def step(x: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(x) ** 2)
            found = tape.gradient(loss, model.trainable_variables)
            optimizer.apply(found, model.trainable_variables)
            return loss

        return step

    return make


def place(job: dict[str, Any]) -> Any:
    """This rank's Place; rank 0 publishes its address in a file."""
    from hearth.ranks.group import Rendezvous
    from hearth.ranks.place import Place

    def rendezvous(name: str) -> Rendezvous:
        path = Path(job["folder"], name.replace("/", "_"))

        def publish(text: str) -> None:
            path.with_suffix(".new").write_text(text)
            path.with_suffix(".new").rename(path)

        def read() -> str:
            limit = time.monotonic() + TIMEOUT_S
            while not path.exists():
                if time.monotonic() > limit:
                    raise TimeoutError(f"rank 0 left no address in {path}")
                time.sleep(0.01)
            return path.read_text()

        host = job["addresses"][job["rank"]].rpartition(":")[0]
        return Rendezvous(publish, read, lambda: None, host=host)

    return Place(job["rank"], len(job["addresses"]), rendezvous)


def main() -> None:
    job = json.loads(sys.stdin.readline())
    task = {"type": "worker", "index": job["rank"]}
    if job["kind"] != "optimizer":
        cluster = {"worker": job["addresses"]}
        os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    make = (optimizer_step if job["kind"] == "optimizer" else strategy_step)(job)
    steps: dict[str, Step] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["contender"] not in steps:
            steps[asked["contender"]] = make(asked["contender"])
        step = steps[asked["contender"]]
        x = tf.random.normal((asked["rows"], WIDTH))
        step(x)  # not timed: it may trace, and it synchronizes the ranks
        start = time.perf_counter()
        for _ in range(asked["steps"]):
            loss = step(x)
        loss.numpy()
        print(json.dumps({"ms": (time.perf_counter() - start) / asked["steps"] * 1e3}), flush=True)
    sys.stdout.flush()
    os._exit(0)  # otherwise TensorFlow's servers would wait for each other


if __name__ == "__main__":
    main()
