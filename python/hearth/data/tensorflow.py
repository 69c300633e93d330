"""A loader as a tf.data.Dataset."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hearth.data.batches import Batches
from hearth.errors import invalid


def as_tf_dataset(loader: Batches) -> tf.data.Dataset:
    """Batches as {column: tensor}; each iteration is the loader's next epoch.

    The element_spec is inferred from the loader's next batch, which is then delivered again to the
    program.
    """
    spec = {name: spec_of(values) for name, values in _peek(loader).items()}
    return tf.data.Dataset.from_generator(lambda: iter(loader), output_signature=spec)


def _peek(loader: Batches) -> dict[str, Any]:
    """Returns the loader's next batch without moving its position."""
    before = loader.state_dict()
    batch = next(iter(loader), None)
    if batch is None:  # the epoch has no more batches
        before = loader.state_dict()
        batch = next(iter(loader), None)
    if batch is None:
        raise invalid("the loader has no batch to infer column types from")
    if not isinstance(batch, dict):
        raise invalid(
            "a loader with `columns` yields tuples: leave `columns` out for as_tf_dataset()"
        )
    if loader.epoch != before["epoch"]:  # an earlier iteration was abandoned
        loader.set_epoch(loader.epoch)
    else:  # omit row counts: checking them would block
        loader.load_state_dict({**before, "partitions": None})
    return batch


def spec_of(values: Any) -> tf.TensorSpec:
    """The spec of a column with any number of rows."""
    array = tf.convert_to_tensor(values)
    return tf.TensorSpec((None, *array.shape[1:]), array.dtype)
