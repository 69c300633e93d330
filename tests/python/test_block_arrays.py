"""What functions over blocks get of columns, and what becomes of what they give: values as they
are, or an error."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

from hearth.ml import block_tasks
from hearth.rows.results import spark_type, to_arrow

WRONG = [
    np.array([1 + 2j]),
    np.array([1.5], np.longdouble),
    np.array([b"12"]),
    np.array(["2020-01-01"], "datetime64[D]"),
]


def reads(values: list) -> np.ndarray:
    spec = block_tasks.Blocks(b"", ("x",), ("x",), False)
    return block_tasks._block(spec, pa.RecordBatch.from_pydict({"x": values}))[0]


@pytest.mark.parametrize("values", WRONG, ids=lambda values: values.dtype.name)
def test_values_that_no_column_holds_are_refused(values):
    with pytest.raises(ValueError, match=re.escape(f"of type {values.dtype.name}:")):
        spark_type(values.dtype.name, 0)
    with pytest.raises(ValueError, match="no column holds"):
        to_arrow(values)


def test_integers_are_bigint_where_they_fit():
    for kind in ("int8", "uint8", "int16", "uint16", "uint32", "uint64"):
        assert to_arrow(np.array([[1, 2]], kind)).to_pylist() == [[1, 2]]
        assert spark_type(kind, 1) == "array<bigint>"
    with pytest.raises(ValueError, match="18446744073709551615 is too large"):
        to_arrow(np.array([2**64 - 1], np.uint64))


@pytest.mark.parametrize(
    "values", [[2**53 + 1, None], [True, None], [[1, None], [2, 3]], [[1.0], None]]
)
def test_nulls_among_values_that_are_no_floats_are_refused(values):
    with pytest.raises(ValueError, match=r"column 'x' .* has nulls"):
        reads(values)


def test_arrays_of_several_lengths_are_refused():
    with pytest.raises(ValueError, match=r"column 'x' has lists of different lengths \(\[1, 2\]\)"):
        reads([[1.0], [1.0, 2.0]])


def test_nulls_among_floats_are_nan():
    np.testing.assert_array_equal(reads([1.0, None]), [1, np.nan])
    np.testing.assert_array_equal(reads([[1.0, None]]), [[1, np.nan]])


def test_a_reduced_column_may_have_any_name():
    parts = {"file": np.arange(3), "allow_pickle": np.array(2.5)}
    found = block_tasks.unpacked(block_tasks._packed(parts))
    assert list(found) == list(parts)
    np.testing.assert_array_equal(found["file"], parts["file"])
    assert found["allow_pickle"] == 2.5
