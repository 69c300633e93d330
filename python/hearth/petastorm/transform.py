"""Transforms rows by a function of pandas DataFrames: Petastorm's TransformSpec."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hearth.errors import invalid

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TransformSpec:
    """A transformation of rows, applied before they are delivered.

    Attributes:
        func: converts a pandas DataFrame of some rows to another, which may have fewer rows; called
            in any thread.
        edit_fields: columns that `func` adds or changes: (name, NumPy type, shape, nullable).
        removed_fields: columns to drop afterwards.
        selected_fields: the columns to keep; cannot be combined with removed_fields.
    """

    func: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    edit_fields: Sequence[Any] | None = None
    removed_fields: Sequence[str] | None = None
    selected_fields: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.removed_fields and self.selected_fields is not None:
            raise invalid("set removed_fields or selected_fields of a TransformSpec, not both")

    def apply(self, columns: dict[str, Any]) -> dict[str, Any]:
        """Transforms the columns of a batch.

        Raises:
            ValueError: a named column is missing, or its values do not fit an array.
        """
        if self.func is not None:
            columns = self._changed(columns)
        names = [name for name in columns if name not in (self.removed_fields or ())]
        if self.selected_fields is not None:
            names = list(self.selected_fields)
        if lost := [name for name in names if name not in columns]:
            raise invalid(
                f"TransformSpec names the unknown column {lost[0]!r}; the columns are "
                f"{list(columns)}"
            )
        return {name: columns[name] for name in names}

    def _changed(self, columns: dict[str, Any]) -> dict[str, Any]:
        import pandas as pd

        assert self.func is not None
        rows = {name: list(v) if np.ndim(v) > 1 else v for name, v in columns.items()}
        frame = self.func(pd.DataFrame(rows))
        fields = {_field(each)[0]: _field(each) for each in self.edit_fields or ()}
        return {
            str(n): _array(str(n), frame[n].tolist(), fields.get(str(n))) for n in frame.columns
        }


def _field(given: Any) -> tuple[str, Any, tuple[int | None, ...]]:
    """(name, type, shape) of an edit field, which is a tuple."""
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) < 3:
        raise invalid(f"edit_fields has {given!r}: use (name, NumPy type, shape, nullable)")
    name, kind, shape = given[:3]
    return name, kind, tuple(shape or ())


def _array(name: str, values: list[Any], field: Any) -> Any:
    if values and isinstance(values[0], str | bytes):
        return values
    kind, shape = (None, None) if field is None else field[1:]
    try:
        array = np.asarray(values, kind)
        if shape is not None and None not in shape:
            array = array.reshape(len(values), *shape)
    except (TypeError, ValueError) as error:
        raise invalid(
            f"column {name!r} of a TransformSpec has values that do not fit an array"
            f"{'' if field is None else f' of the type {kind} and shape {shape}'}: {error}"
        ) from error
    return array
