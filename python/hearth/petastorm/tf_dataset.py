"""Minibatches of a shard as a tf.data.Dataset."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from hearth.data.tensorflow import spec_of
from hearth.errors import invalid

if TYPE_CHECKING:
    from hearth.petastorm.batches import ShardBatches


def as_dataset(batches: ShardBatches) -> tf.data.Dataset:
    """Batches as named tuples of tensors. Reads the first batch to infer the types.

    Raises:
        ValueError: there is no batch.
    """
    iterator = iter(batches)
    first = next(iterator, None)
    if first is None:
        raise invalid("the shard has no row, so column types cannot be inferred")
    kind = namedtuple("Batch", list(first))  # type: ignore[misc]
    spec = tuple(spec_of(values) for values in first.values())
    pending = [(first, iterator)]

    def each() -> Iterator[Any]:
        if not pending:
            yield from (tuple(batch.values()) for batch in batches)
            return
        batch, others = pending.pop()
        yield tuple(batch.values())
        yield from (tuple(batch.values()) for batch in others)

    dataset = tf.data.Dataset.from_generator(each, output_signature=spec)
    return dataset.map(lambda *columns: kind(*columns))
