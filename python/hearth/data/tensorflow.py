"""A loader as a tf.data.Dataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from hearth.data.loader import Loader


def as_tf_dataset(loader: Loader) -> tf.data.Dataset:
    """Batches as {column: tensor}; each pass over it is the loader's next epoch.

    Its element_spec follows from the loader's first batch, which is given again.
    """
    first, rest = _peek(loader)
    spec = {name: _spec(values) for name, values in first.items()}
    pending = [(first, rest)]

    def batches() -> Iterator[dict[str, Any]]:
        if pending:
            batch, others = pending.pop()
            yield batch
            yield from others
        else:
            yield from loader

    return tf.data.Dataset.from_generator(batches, output_signature=spec)


def _peek(loader: Loader) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    batches = iter(loader)
    first = next(batches, None)
    if first is None:
        raise ValueError("the loader has no batch, so the types of its columns are not known")
    if not isinstance(first, dict):
        raise ValueError("a loader with `columns` gives tuples: leave them out for as_tf_dataset()")
    return first, batches


def _spec(values: Any) -> tf.TensorSpec:
    """Of a column: any number of rows."""
    array = tf.convert_to_tensor(values)
    return tf.TensorSpec((None, *array.shape[1:]), array.dtype)
