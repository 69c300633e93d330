"""Arguments and results of functions over blocks: values pass unchanged, or an error is raised."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

from hearth.ml import block_tasks
from hearth.rows.dense_arrays import fitted
from hearth.rows.results import as_column, spark_type, to_arrow

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
    with pytest.raises(ValueError, match=re.escape(f"of type {values.dtype.name} are")):
        spark_type(values.dtype.name, 0)
    with pytest.raises(ValueError, match="not supported in columns"):
        to_arrow(values)


def test_integers_are_bigint_where_they_fit():
    for kind in ("int8", "uint8", "int16", "uint16", "uint32", "uint64"):
        assert to_arrow(np.array([[1, 2]], kind)).to_pylist() == [[1, 2]]
        assert spark_type(kind, 1) == "array<bigint>"
    with pytest.raises(ValueError, match="18446744073709551615 is too large"):
        to_arrow(np.array([2**64 - 1], np.uint64))


@pytest.mark.parametrize(
    "values",
    [[2**53 + 1, None], [1.5, None], [True, None], ["a", None], [[1, None], [2, 3]], [[1.0], None]],
)
def test_nulls_are_refused(values):
    with pytest.raises(
        ValueError, match=r"column 'x' \(\S+( \S+)?\) has 1 null in a batch of 2 rows"
    ):
        reads(values)


def test_arrays_of_several_lengths_are_refused():
    with pytest.raises(ValueError, match=r"column 'x' has lists of different lengths \(\[1, 2\]\)"):
        reads([[1.0], [1.0, 2.0]])


@pytest.mark.parametrize(
    ("values", "kind", "wrong"),
    [
        (np.array([1, 2**40 + 5]), "int32", "1099511627781"),
        (np.array([0, -1]), "uint8", "-1"),
        (np.array([2**63], np.uint64), "int64", "9223372036854775808"),
        (np.array([2.0, 3e10]), "int32", "30000000000.0"),
        (np.array([2.0**63]), "int64", "9.223372036854776e\\+18"),
        (np.array([1.5]), "int64", "1.5"),
        (np.array([np.nan]), "int64", "nan"),
        (np.array([0.0, 1e300]), "float32", "1e\\+300"),
        (np.array([70000]), "float16", "70000"),
        (np.array([0, 2]), "bool", "2"),
    ],
)
def test_a_value_that_a_type_cannot_hold_is_refused(values, kind, wrong):
    counted = rf"value {wrong}, which does not fit {kind} \(1 of {len(values)} values"
    with pytest.raises(ValueError, match=f"the column 'x' has the {counted}"):
        fitted(values, kind, "x")


def test_values_that_a_type_can_hold_are_kept():
    assert fitted(np.array([-(2.0**31), 7]), "int32", "x").tolist() == [-(2**31), 7]
    assert fitted(np.array([2**63 - 1]), "uint64", "x").tolist() == [2**63 - 1]
    assert fitted(np.array([True, False]), "int8", "x").tolist() == [1, 0]
    floats = fitted(np.array([np.inf, np.nan, 0.1]), "float32", "x")
    np.testing.assert_array_equal(floats, np.float32([np.inf, np.nan, 0.1]))


@pytest.mark.parametrize(
    ("values", "kind", "said"),
    [
        (
            [1e300],
            pa.float32(),
            r"column .z. has the value 1e\+300, which does not fit float32",
        ),
        ([[1e300]], pa.list_(pa.float32()), r"the column 'z' has the value 1e\+300"),
        ([2**40], pa.int32(), r"the column 'z' of 1 rows does not fit int32: .*1099511627776"),
        ([[1.0, 2.0]], pa.float32(), r"'z' is declared as float, .* values are array<float> "),
    ],
)
def test_a_result_that_its_column_cannot_hold_is_refused(values, kind, said):
    with pytest.raises(ValueError, match=said):
        as_column(np.array(values), pa.field("z", kind))


def test_a_reduced_column_may_have_any_name():
    parts = {"file": np.arange(3), "allow_pickle": np.array(2.5)}
    found = block_tasks.unpacked(block_tasks._packed(parts))
    assert list(found) == list(parts)
    np.testing.assert_array_equal(found["file"], parts["file"])
    assert found["allow_pickle"] == 2.5
