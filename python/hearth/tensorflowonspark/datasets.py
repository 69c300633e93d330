"""A feed as a tf.data.Dataset."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from hearth.errors import invalid


def as_dataset(feed: Any, batch_size: int, output_signature: Any) -> Any:
    """Implements as_dataset() of feeds."""
    import tensorflow as tf

    def batches() -> Iterator[Any]:
        while not feed.should_stop():
            batch = feed.next_numpy(batch_size)
            if batch is not None:
                yield batch

    source = batches()
    if output_signature is None:
        first = next(source, None)
        if first is None:
            raise invalid("the feed ended without a row: pass output_signature to as_dataset()")
        source = itertools.chain([first], source)
        output_signature = tf.nest.map_structure(_spec, first)
    found = tf.data.Dataset.from_generator(lambda: source, output_signature=output_signature)
    # The rows are already this node's share; a strategy that shards the dataset would drop most of
    # them.
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return found.with_options(options)


def _spec(array: np.ndarray) -> Any:
    """The spec of minibatches with this array's type and shape, and any number of rows."""
    import tensorflow as tf

    kind = tf.string if array.dtype.kind in "OSU" else array.dtype
    return tf.TensorSpec((None, *array.shape[1:]), kind)
