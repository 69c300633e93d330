"""The tasks of map_blocks() and reduce_blocks(), and the driver's reduction of their results."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hearth.errors import invalid
from hearth.rows import model_thread
from hearth.rows.dense_arrays import dense_array, fitted
from hearth.rows.results import as_array, as_column, spark_type

# Schema of the rows that contain a partition's packed results.
REDUCED_SCHEMA = "parts binary"


@dataclass(frozen=True)
class Blocks:
    """A function over columns, as sent to tasks.

    `program`: the pickled function; `columns`: names for messages and results; `read`: the frame's
    columns with the values of `columns`; `single`: columns of `read` that are converted to float32;
    `tensors`: whether the function takes PyTorch tensors.
    """

    program: bytes
    columns: tuple[str, ...]
    read: tuple[str, ...]
    tensors: bool
    single: tuple[str, ...] = ()

    def function(self) -> Any:
        """Unpickles the function, which the session's driver sent; the process caches it."""
        key = hashlib.sha256(self.program).hexdigest()
        return model_thread.kept("blocks", key, lambda: pickle.loads(self.program))


def mapped(
    spec: Blocks, kept: tuple[str, ...], made: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yields each batch's kept columns and the new columns."""
    function = spec.function()
    for batch in batches:
        found = _called(spec, function, _block(spec, batch), made.names)
        _check_names(found, made.names)
        columns = [as_column(found[field.name], field) for field in made]
        lengths = {len(column) for column in columns}
        if len(lengths) > 1 or (kept and lengths != {batch.num_rows}):
            raise invalid(
                f"the function returned {sorted(lengths)} rows for a block of {batch.num_rows} "
                "rows: each new column must have as many rows as the block (with trim=True, "
                "which drops the other columns, any number)"
            )
        old = [batch.column(name) for name in kept]
        yield pa.RecordBatch.from_arrays([*old, *columns], names=[*kept, *made.names])


def probed(spec: Blocks, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields one row: the types of the function's results for the first batch."""
    for batch in batches:
        if not batch.num_rows:
            continue
        found = _called(spec, spec.function(), _block(spec, batch))
        types = [
            f"{_quoted(name)} {spark_type(_kind_of(array), array.ndim - 1)}"
            for name, array in found.items()
        ]
        yield pa.RecordBatch.from_pydict({"types": [", ".join(types)]})
        return


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _kind_of(array: np.ndarray) -> str:
    return "string" if array.dtype.kind in "OU" else array.dtype.name


def reduced(spec: Blocks, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields one row, the reduction of all batches; none if there are no rows."""
    function, left = spec.function(), None
    for batch in batches:
        if not batch.num_rows:
            continue
        found = _row_of(spec, function, _block(spec, batch))
        left = found if left is None else _of_two(spec, function, left, found)
    if left is not None:
        yield pa.RecordBatch.from_pydict({"parts": [_packed(left)]})


def in_pairs(spec: Blocks, parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Reduces several results pair by pair."""
    function = spec.function()
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        joined = [_of_two(spec, function, a, b) for a, b in pairs]
        parts = joined + parts[2 * len(joined) :]
    return parts[0]


def unpacked(data: bytes) -> dict[str, np.ndarray]:
    """The inverse of _packed(); raises ValueError for anything else."""
    with np.load(io.BytesIO(data), allow_pickle=False) as parts:
        *values, names = (parts[name] for name in parts.files)
    return dict(zip(names.tolist(), values, strict=True))


def _packed(parts: Mapping[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    # Positional arguments, because a column may have the name of one of savez()'s parameters.
    np.savez(buffer, *parts.values(), np.array(list(parts)))
    return buffer.getvalue()


def _block(spec: Blocks, batch: pa.RecordBatch) -> list[np.ndarray]:
    """An array for each column. Raises ValueError if a column does not fit an array."""
    block = []
    for name, read in zip(spec.columns, spec.read, strict=True):
        array = dense_array(batch.column(read), name)
        block.append(fitted(array, "float32", name) if read in spec.single else array)
    return block


def _called(
    spec: Blocks, function: Any, block: list[np.ndarray], names: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """The function's results by name. A result that is a single array gets the only name in
    `names`."""
    found = _with_tensors(spec, function, block) if spec.tensors else function(*block)
    if hasattr(found, "_asdict"):
        found = found._asdict()
    if not isinstance(found, Mapping) and len(names) == 1:
        found = {names[0]: found}
    if not isinstance(found, Mapping):
        raise invalid(
            f"the function returned a {type(found).__name__}: it must return a dict of arrays by "
            "column name (or one array, if `outputs` names one column)"
        )
    return {name: as_array(value) for name, value in found.items()}


def _with_tensors(spec: Blocks, function: Any, block: list[np.ndarray]) -> Any:
    import torch

    from hearth.torch.datasets import as_tensor

    if isinstance(function, torch.nn.Module):
        function.eval()
    names = zip(block, spec.columns, strict=True)
    tensors = [as_tensor(array, name) for array, name in names]
    with torch.inference_mode():
        return function(*tensors)


def _check_names(found: Mapping[str, Any], wanted: list[str]) -> None:
    if set(found) != set(wanted):
        raise invalid(
            f"the function returned {', '.join(found) or 'nothing'}, but the new columns are "
            f"{', '.join(wanted)}"
        )


def _row_of(spec: Blocks, function: Any, block: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Reduces a block to one row. Raises ValueError if its shape differs from the shape of the
    block's rows."""
    names = list(dict.fromkeys(spec.columns))
    found = _called(spec, function, block, names)
    _check_names(found, names)
    for name, rows in zip(spec.columns, block, strict=True):
        if found[name].shape != rows.shape[1:]:
            raise invalid(
                f"the function returned shape {found[name].shape} for rows of {name!r} with shape "
                f"{rows.shape[1:]}: it must return one row, which is reduced again with others"
            )
    return found


def _of_two(
    spec: Blocks, function: Any, one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    return _row_of(spec, function, [np.stack([one[name], other[name]]) for name in spec.columns])
