"""Pickled Python objects as record batches: columns `piece` (bytes) and `last` (of its pickle).

A pickle that is larger than a piece is cut up, so that no ring is too small for it. What is pickled
are Spark's own rows, between processes that have proved to know the cluster's key; what came from
another host is read without running code.
"""

from __future__ import annotations

import io
import itertools
import pickle
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

PIECE_BYTES = 2 << 20

# By module: what rows and results commonly consist of. None runs code of a pickle's choice.
_ARRAYS = ("_reconstruct", "scalar")
_DATA_CLASSES: dict[str, tuple[str, ...]] = {
    "builtins": ("complex", "frozenset", "set"),
    "collections": ("OrderedDict",),
    "datetime": ("date", "datetime", "time", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "numpy": ("dtype", "ndarray"),
    "numpy._core.multiarray": _ARRAYS,
    "numpy._core.numeric": ("_frombuffer",),
    "numpy.core.multiarray": _ARRAYS,
    "numpy.core.numeric": ("_frombuffer",),
    "pyspark.sql.types": ("_create_row",),
}
# Pickles below the first size travel together, up to about the second; larger ones are not copied
# on their way to the ring.
_LARGE_BYTES = 1 << 17
_BATCH_BYTES = 1 << 20


@dataclass(frozen=True)
class RowFormat:
    """How the batches of a feed hold its rows."""

    pickled: bool  # else in columns
    batched: bool  # each pickle is a list of rows
    from_afar: bool  # they came from another host


def batches_of_pickles(pickles: Iterable[bytes]) -> Iterator[pa.RecordBatch]:
    """The pickles in order; small ones wait for others until there are _BATCH_BYTES of them."""
    waiting: list[bytes] = []
    size = 0
    for data in pickles:
        large = len(data) >= _LARGE_BYTES
        if waiting and (large or size >= _BATCH_BYTES):
            yield _batch(waiting)
            waiting, size = [], 0
        if large:
            yield from _pieces(data)
        else:
            waiting.append(data)
            size += len(data)
    if waiting:
        yield _batch(waiting)


def load(data: Any, from_afar: bool) -> Any:
    """The value of a whole pickle; of plain data in half of the time of pickle.loads().

    Raises:
        pickle.UnpicklingError: it came `from_afar` and is damaged, or more than data of well-known
            classes.
    """
    from hearth.native._core import load_plain, pickle_is_sound

    value = load_plain(data)
    if value is not None:
        return value
    if not from_afar:
        return pickle.loads(data)
    if not pickle_is_sound(data):
        raise pickle.UnpicklingError(
            "rows from another host are damaged, or tuples in them are nested deeper than 1000: "
            "give flatter rows, or run a node on each executor"
        )
    return _DataUnpickler(data).value()


class _DataUnpickler(pickle.Unpickler):
    """For bytes that came over a network: makes data, and calls nothing else."""

    def __init__(self, data: Any):
        from hearth.tensorflowonspark import foreign_arrays

        super().__init__(io.BytesIO(data))
        self._arrays = foreign_arrays.ForeignArrays()

    def value(self) -> Any:
        """The pickle's value. Raises UnpicklingError, whatever is wrong with it."""
        try:
            return self._arrays.finished(self.load())
        except pickle.UnpicklingError:
            raise
        except Exception as error:
            raise pickle.UnpicklingError(
                f"rows from another host are damaged: {type(error).__name__}: {error}"
            ) from error

    def find_class(self, module: str, name: str) -> Any:
        if name not in _DATA_CLASSES.get(module, ()):
            raise pickle.UnpicklingError(
                f"rows with objects of {module}.{name} are not taken from another host: run a node "
                "on each executor, or give rows of numbers, strings and arrays, or a DataFrame"
            )
        if module.startswith("numpy"):
            return self._arrays.function(name)
        found = super().find_class(module, name)
        # A pickle can change what it is given, but for built-in classes.
        return found if isinstance(found, type) else self._arrays.guarded(found)


class Unpickler:
    """The values of pickles that come in batches_of_pickles(). One thread uses it."""

    def __init__(self) -> None:
        self._pieces: list[Any] = []  # of a pickle that did not fit into one batch

    @property
    def within_pickle(self) -> bool:
        """Whether the next piece goes on with a pickle that began in a batch before."""
        return bool(self._pieces)

    def values(self, batch: pa.RecordBatch, from_afar: bool) -> Iterator[Any]:
        """Those of all pickles that end in this batch, as load()."""
        for piece, last in zip(batch.column(0), batch.column(1), strict=True):
            self._pieces.append(piece.as_buffer())
            if last.as_py():
                whole = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
                self._pieces = []
                yield load(whole, from_afar)


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


def _batch(pickles: list[bytes]) -> pa.RecordBatch:
    import pyarrow as pa

    last = pa.array([True] * len(pickles))
    return pa.record_batch({"piece": pa.array(pickles, pa.binary()), "last": last})


def _pieces(data: bytes) -> Iterator[pa.RecordBatch]:
    """A large pickle in batches of one piece each; the pieces lie in `data`."""
    import pyarrow as pa

    whole = pa.py_buffer(data)
    for start in range(0, whole.size, PIECE_BYTES):
        part = whole.slice(start, min(PIECE_BYTES, whole.size - start))
        offsets = pa.py_buffer(struct.pack("=ii", 0, part.size))
        piece = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, part])
        last = pa.array([start + PIECE_BYTES >= whole.size])
        yield pa.record_batch({"piece": piece, "last": last})
