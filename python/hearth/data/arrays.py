"""Converts the core's rows to NumPy arrays by column, applying transforms to encoded columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hearth.errors import InvalidArgumentError

if TYPE_CHECKING:
    from hearth.data.dataset import BatchRows


@dataclass
class Arrays:
    """Columns of one batch. `invalid_index`: indices of rows that a transform could not decode and
    that were replaced by other rows.
    """

    values: dict[str, Any]
    invalid_index: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def invalid(self) -> int:
        """The number of rows that were replaced."""
        return len(self.invalid_index)


def batch_arrays(
    rows: BatchRows,
    names: Sequence[str],
    ragged: Sequence[str],
    transforms: Mapping[str, Any],
    spare: Iterator[BatchRows],
) -> Arrays:
    """Converts the columns `names` of the core's rows; the caller owns the arrays.

    Args:
        rows: the rows of the batch.
        names, ragged, transforms: see LoaderOptions.
        spare: rows that may replace undecodable ones if no row of the batch is decodable.

    Raises:
        ValueError: a column is missing or does not fit an array, or neither the batch nor the spare
            rows have a decodable row.
    """
    arrays, invalid = _transformed(rows, names, ragged, transforms)
    if not invalid.any():
        return arrays
    arrays.invalid_index = np.flatnonzero(invalid)
    if not invalid.all():
        _replace(arrays, np.flatnonzero(~invalid))
        return arrays
    for others in spare:
        taken, failed = _transformed(others, names, ragged, transforms)
        if not failed.all():
            valid = np.resize(np.flatnonzero(~failed), rows.count)
            arrays.values = {name: _picked(values, valid) for name, values in taken.values.items()}
            return arrays
    raise InvalidArgumentError(
        f"none of the {rows.count} rows of a batch, and none of the rows after it, can be "
        f"decoded by the transforms of {', '.join(transforms)}: check the columns' values"
    )


def _transformed(
    rows: BatchRows, names: Sequence[str], ragged: Sequence[str], transforms: Mapping[str, Any]
) -> tuple[Arrays, np.ndarray]:
    """The columns, and a mask of the rows that a transform could not decode."""
    arrays = Arrays({})
    invalid = np.zeros(rows.count, bool)
    for name in names:
        if name in transforms:
            values, failed = transforms[name].apply(rows.gather(name), rows.ids())
            arrays.values[name] = values
            invalid |= failed
        else:
            arrays.values[name] = column_array(rows, name, name in ragged)
    return arrays, invalid


def column_array(rows: Any, name: str, ragged: bool) -> Any:
    """One column. Raises ValueError like batch_arrays()."""
    import pyarrow as pa

    from hearth.rows.columns import Columns

    values = rows.gather(name, ragged=ragged)
    if values is None:  # only pyarrow can convert the type
        values = Columns(pa.record_batch(rows.record_batch([name]))).array(name, ragged)
    return values


def _replace(arrays: Arrays, valid: np.ndarray) -> None:
    """Overwrites the undecodable rows with the decodable ones, cycling through them."""
    others = np.resize(valid, len(arrays.invalid_index))
    for values in arrays.values.values():
        if isinstance(values, np.ndarray):
            values[arrays.invalid_index] = values[others]
        else:
            for index, other in zip(arrays.invalid_index, others, strict=True):
                values[index] = values[other]


def _picked(values: Any, index: np.ndarray) -> Any:
    """The selected rows of a column."""
    if isinstance(values, np.ndarray):
        return values[index]
    return [values[i] for i in index]
