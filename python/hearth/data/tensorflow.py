"""A loader as a tf.data.Dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from hearth.data.loader import Loader


def as_tf_dataset(loader: Loader) -> tf.data.Dataset:
    """Batches as {column: tensor}; each pass over it is the loader's next epoch.

    Its element_spec follows from the loader's next batch, which is made once more for the program.
    """
    spec = {name: _spec(values) for name, values in _peek(loader).items()}
    return tf.data.Dataset.from_generator(lambda: iter(loader), output_signature=spec)


def _peek(loader: Loader) -> dict[str, Any]:
    """The batch that the program gets next; leaves the position before it."""
    before = loader.state_dict()
    batch = next(iter(loader), None)
    if batch is None:  # the state was saved at the epoch's end
        before = loader.state_dict()
        batch = next(iter(loader), None)
    if batch is None:
        raise ValueError("the loader has no batch, so the types of its columns are not known")
    if not isinstance(batch, dict):
        raise ValueError("a loader with `columns` gives tuples: leave them out for as_tf_dataset()")
    if loader.epoch != before["epoch"]:  # an iteration was left before
        loader.set_epoch(loader.epoch)
    else:  # counts of all partitions would have to be waited for
        loader.load_state_dict({**before, "partitions": None})
    return batch


def _spec(values: Any) -> tf.TensorSpec:
    """Of a column: any number of rows."""
    array = tf.convert_to_tensor(values)
    return tf.TensorSpec((None, *array.shape[1:]), array.dtype)
