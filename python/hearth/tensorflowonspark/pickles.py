"""Pickled Python objects as record batches: columns `piece` (bytes) and `last` (of its pickle).

A pickle that is larger than a piece is cut up, so that no ring is too small for it. What is pickled
are Spark's own rows, between processes that have proved to know the cluster's key.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

PIECE_BYTES = 2 << 20
# Small pickles travel together, up to about this many bytes.
_BATCH_BYTES = 1 << 20


def batches_of_pickles(pickles: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
    """The pickles in order; a batch goes out as soon as it has _BATCH_BYTES."""
    pieces: list[memoryview | bytes] = []
    last: list[bool] = []
    size = 0
    for data in pickles:
        view = memoryview(data)
        for start in range(0, max(1, len(view)), PIECE_BYTES):
            pieces.append(view[start : start + PIECE_BYTES])
            last.append(start + PIECE_BYTES >= len(view))
            size += len(pieces[-1])
            if size >= _BATCH_BYTES:
                yield _batch(pieces, last)
                pieces, last, size = [], [], 0
    if pieces:
        yield _batch(pieces, last)


def pickle_rows(rows: Iterable[Any]) -> Iterator[bytes]:
    """Pickles of lists of rows, of about 64 KB to 640 KB each, as Spark makes them."""
    iterator = iter(rows)
    count = 1
    while chunk := list(itertools.islice(iterator, count)):
        data = pickle.dumps(chunk, pickle.HIGHEST_PROTOCOL)
        yield data
        if len(data) < 1 << 16:
            count *= 2
        elif len(data) > 10 << 16 and count > 1:
            count //= 2


def _batch(pieces: list[Any], last: list[bool]) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.record_batch({"piece": pa.array(pieces, pa.binary()), "last": pa.array(last)})
