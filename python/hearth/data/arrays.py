"""Rows of the core as NumPy arrays by column, with transforms of encoded columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Arrays:
    """Columns of one batch. `invalid_index`: rows that a transform could not decode, which hold the
    values of another row of the batch."""

    values: dict[str, Any]
    invalid_index: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def invalid(self) -> int:
        return len(self.invalid_index)


def batch_arrays(
    rows: Any, names: Sequence[str], ragged: Sequence[str], transforms: Mapping[str, Any]
) -> Arrays:
    """The columns `names` of the core's rows; the caller owns the arrays.

    Raises:
        ValueError: a column is not there, no array holds its values, or a transform could decode
            none of the rows.
    """
    made = Arrays({})
    invalid = np.zeros(rows.count, bool)
    for name in names:
        if name in transforms:
            values, failed = transforms[name].apply(rows.gather(name), rows.ids())
            made.values[name] = values
            invalid |= failed
        else:
            made.values[name] = column_array(rows, name, name in ragged)
    if invalid.any():
        _replace(made, invalid, list(transforms))
    return made


def column_array(rows: Any, name: str, ragged: bool) -> Any:
    """One column. Raises ValueError as batch_arrays()."""
    import pyarrow as pa

    from hearth.rows.columns import Columns

    values = rows.gather(name, ragged=ragged)
    if values is None:  # a type that pyarrow converts
        values = Columns(pa.record_batch(rows.record_batch([name]))).array(name, ragged)
    return values


def _replace(made: Arrays, invalid: np.ndarray, transforms: Sequence[str]) -> None:
    """Puts the values of decodable rows, in turn, in place of those that are not."""
    valid = np.flatnonzero(~invalid)
    if not len(valid):
        raise ValueError(
            f"none of the {len(invalid)} rows of a batch can be decoded by the transforms of "
            f"{', '.join(transforms)}: check the columns' values"
        )
    made.invalid_index = np.flatnonzero(invalid)
    others = np.resize(valid, len(made.invalid_index))
    for values in made.values.values():
        if isinstance(values, np.ndarray):
            values[made.invalid_index] = values[others]
        else:
            for index, other in zip(made.invalid_index, others, strict=True):
                values[index] = values[other]
