"""Sends pickled Python objects as record batches with the columns `piece` (bytes) and `last`
(whether the piece is the last of its pickle).

A pickle larger than PIECE_BYTES is divided, so that it fits any ring. The pickles contain Spark's
rows, sent between processes that have authenticated each other with the cluster's key. Pickles from
another host are read without running code.
"""

from __future__ import annotations

import io
import itertools
import pickle
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hearth.native._core import Pieces

PIECE_BYTES = 2 << 20

# Classes that pickles may contain, by module. They are common in rows and results, and do not let a
# pickle run code.
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
# Limit of a batch. Large, because each batch costs as much time as copying 100 KB.
_BATCH_BYTES = 1 << 20


def batches_of_pickles(pickles: Iterable[bytes | memoryview]) -> Iterator[Pieces]:
    """Batches of pickles, in order, of up to _BATCH_BYTES, or of a single larger piece."""
    from hearth.native._core import Pieces

    waiting: list[bytes | memoryview] = []
    size = 0
    for data in pickles:
        large = len(data) > PIECE_BYTES
        if waiting and (large or size + len(data) > _BATCH_BYTES):
            yield Pieces(waiting)
            waiting, size = [], 0
        if large:
            whole = memoryview(data)
            for start in range(0, len(data), PIECE_BYTES):
                yield Pieces([whole[start : start + PIECE_BYTES]], start + PIECE_BYTES >= len(data))
        else:
            waiting.append(data)
            size += len(data)
    if waiting:
        yield Pieces(waiting)


def pieces_of(batch: Any) -> tuple[list[Any], list[bool]]:
    """The pieces in a batch, and whether each is the last of its pickle.

    The pieces are valid while the batch is in the ring.
    """
    if hasattr(batch, "pieces"):
        return batch.pieces()
    return [piece.as_buffer() for piece in batch.column(0)], batch.column(1).to_pylist()


def load(data: Any, from_remote: bool) -> Any:
    """Unpickles a complete pickle; plain data takes half the time of pickle.loads().

    Raises:
        pickle.UnpicklingError: the pickle is `from_remote` and is corrupt or contains objects of a
            class that is not allowed.
    """
    from hearth.native._core import load_plain, pickle_is_sound

    value = load_plain(data)
    if value is not None:
        return value
    if not from_remote:
        return pickle.loads(data)
    if not pickle_is_sound(data):
        raise pickle.UnpicklingError(
            "rows from another host are corrupt, or have tuples nested deeper than 1000: "
            "pass flatter rows, or run a node on each executor"
        )
    return _DataUnpickler(data).value()


class _DataUnpickler(pickle.Unpickler):
    """Unpickles bytes from the network: creates data, but calls no other functions."""

    def __init__(self, data: Any):
        from hearth.rows import foreign_arrays

        super().__init__(io.BytesIO(data))
        self._arrays = foreign_arrays.ForeignArrays()

    def value(self) -> Any:
        """Returns the pickle's value. Raises UnpicklingError on any error."""
        try:
            return self._arrays.finished(self.load())
        except pickle.UnpicklingError:
            raise
        except Exception as error:
            raise pickle.UnpicklingError(
                f"rows from another host are corrupt: {type(error).__name__}: {error}"
            ) from error

    def find_class(self, module: str, name: str) -> Any:
        if name not in _DATA_CLASSES.get(module, ()):
            raise pickle.UnpicklingError(
                f"rows with objects of {module}.{name} are not accepted from another host: run a "
                "node on each executor, or pass rows of numbers, strings and arrays, or a DataFrame"
            )
        if module.startswith("numpy"):
            return self._arrays.function(name)
        found = super().find_class(module, name)
        # Functions are wrapped, because a pickle could modify them, unlike built-in classes.
        return found if isinstance(found, type) else self._arrays.guarded(found)


class Unpickler:
    """Reads the values of batches_of_pickles(). Not thread-safe."""

    def __init__(self) -> None:
        self._pieces: list[Any] = []  # pieces of an incomplete pickle

    @property
    def within_pickle(self) -> bool:
        """Whether the next piece continues a pickle of an earlier batch."""
        return bool(self._pieces)

    def load(self, data: Any, from_remote: bool) -> Any:
        """The value of a complete pickle, like load()."""
        return load(data, from_remote)

    def values(self, batch: Any, from_remote: bool) -> Iterator[Any]:
        """The values of all pickles that end in this batch (see pieces_of()), like load()."""
        for piece, last in zip(*pieces_of(batch), strict=True):
            if not last:
                self._pieces.append(bytes(piece))
            elif self._pieces:
                whole = b"".join((*self._pieces, piece))
                self._pieces = []
                yield self.load(whole, from_remote)
            else:
                yield self.load(piece, from_remote)


def pickle_rows(rows: Iterable[Any]) -> Iterator[bytes]:
    """Pickles lists of rows, about 64 KB to 640 KB each, like Spark does."""
    iterator = iter(rows)
    count = 1
    while chunk := list(itertools.islice(iterator, count)):
        data = pickle.dumps(chunk, pickle.HIGHEST_PROTOCOL)
        yield data
        if len(data) < 1 << 16:
            count *= 2
        elif len(data) > 10 << 16 and count > 1:
            count //= 2
