"""Columns of a DataFrame that a stage reads: those that are there, vectors as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Names of the arrays that stand for vectors, while a stage runs.
_ARRAY = "__hearth_array_of_"


def check(stage: str, dataset: Any, columns: Sequence[str]) -> None:
    """Raises ValueError where the DataFrame lacks a column that the stage reads."""
    for name in columns:
        if name not in dataset.columns:
            raise ValueError(
                f"{stage} reads the column {name!r}, but the DataFrame has "
                f"{', '.join(dataset.columns)}: name another, or add it"
            )


def check_new(stage: str, dataset: Any, columns: Sequence[str]) -> None:
    """Raises ValueError where the DataFrame has a column already that the stage adds."""
    for name in columns:
        if name in dataset.columns:
            raise ValueError(
                f"{stage} adds a column {name!r}, which the DataFrame has already: "
                "set another name, or drop it"
            )


def is_vector(dataset: Any, name: str) -> bool:
    """Whether a column holds Spark ML's vectors."""
    return dataset.schema[name].dataType.typeName() == "vectorudt"


def as_array(dataset: Any, name: str, kind: str = "float32") -> Any:
    """A column as it is, a vector's values as an array of `kind`; under the name that it had."""
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql import functions

    column = functions.col(f"`{name}`")
    return vector_to_array(column, kind).alias(name) if is_vector(dataset, name) else column


def beside_vectors(
    dataset: Any, columns: Sequence[str], kind: str = "float32"
) -> tuple[Any, list[str]]:
    """The DataFrame with an array beside each vector of `columns`; and what to read instead."""
    read = [_ARRAY + name if is_vector(dataset, name) else name for name in columns]
    arrays = [
        as_array(dataset, name, kind).alias(new)
        for name, new in dict(zip(columns, read, strict=True)).items()
        if name != new
    ]
    return (dataset.select("*", *arrays) if arrays else dataset), read
