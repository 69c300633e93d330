"""A model's outputs as columns: numbers or texts of any shape, the first dimension the rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_SCALARS = {
    "float16": "float",
    "bfloat16": "float",
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "int64": "bigint",
    **dict.fromkeys(("int8", "int16", "uint8", "uint16", "uint32", "uint64"), "bigint"),
    "bool": "boolean",
    "string": "string",
}


def spark_type(kind: str, depth: int) -> str:
    """The type of a column: a scalar for one value per row, else arrays in each other.

    `kind`: of the values, by numpy's name; `depth`: dimensions of a row's value.

    Raises:
        ValueError: no column holds such values, complex numbers for instance.
    """
    scalar = _SCALARS.get(kind)
    if scalar is None:
        raise ValueError(
            f"no column holds values of type {kind}: make them numbers of at most 64 bits, truth "
            "values or texts"
        )
    return "array<" * depth + scalar + ">" * depth


def to_arrow(values: np.ndarray) -> pa.Array:
    """Numbers or bytes of any shape, in the type that spark_type() says; raises as that does."""
    import numpy as np
    import pyarrow as pa

    flat = values.reshape(-1)
    if values.dtype == object:
        column = pa.array([text.decode() for text in flat], pa.string())
    elif spark_type(values.dtype.name, 0) == "bigint":
        if values.dtype == np.uint64 and flat.size and flat.max() > np.iinfo(np.int64).max:
            raise ValueError(f"the value {flat.max()} is too large for a column of bigint")
        column = pa.array(flat.astype(np.int64, copy=False))
    else:
        small = values.dtype.itemsize == 2
        column = pa.array(flat.astype(np.float32) if small else flat)
    for depth in range(values.ndim - 1, 0, -1):
        count = math.prod(values.shape[:depth])
        offsets = np.arange(count + 1, dtype=np.int64) * values.shape[depth]
        column = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), column)
    return column
