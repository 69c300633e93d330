"""Nodes' results as columns: types and shapes of arrays, and the same rows as without columns."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

from hearth.rows.column_results import ColumnResults, ResultUnpickler, result_columns
from hearth.rows.pickles import batches_of_pickles

ARRAYS = [
    np.arange(6, dtype="f4").reshape(3, 2),
    np.arange(3, dtype="i1"),
    np.array([True, False, True]),
    np.arange(24.0).reshape(3, 2, 4),
    np.zeros((3, 0), "f4"),
]


def travelled(results: ColumnResults | list) -> ColumnResults | list:
    """The results after transfer to a feed task on another host."""
    data = pickle.dumps(results) if isinstance(results, list) else results.dumped()
    reader = ResultUnpickler()
    (found,) = [
        value
        for pieces in batches_of_pickles([data])
        for value in reader.values(pa.record_batch(pieces), True)
    ]
    return found


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_arrays_keep_type_and_shape_and_return_numpy_rows(array):
    found = travelled(ColumnResults.of(array))
    back = found.arrays()["value"]
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(back, array)
    for row, wanted in zip(found.rows(), array, strict=True):
        np.testing.assert_array_equal(row, wanted)
        assert type(row) is type(wanted)


def test_results_larger_than_a_chunk_arrive_complete():
    array = np.arange(1 << 20, dtype="f8").reshape(1 << 10, -1)
    np.testing.assert_array_equal(travelled(ColumnResults.of(array)).arrays()["value"], array)


def test_other_values_stay_a_list_of_objects():
    for other in ([1, 2], (np.ones(2), np.ones(2)), np.array(["a"]), np.float32(1), {"a": [1]}):
        assert ColumnResults.of(other) is None
    assert travelled([1, "a"]) == [1, "a"]
    assert travelled(ColumnResults.of(np.ones(2, "f4"), plain=True)).rows() == [1.0, 1.0]
    named = ColumnResults.of({"a": np.arange(2), "b": np.array(["x", "y"], object)})
    assert travelled(named).rows() == [{"a": 0, "b": "x"}, {"a": 1, "b": "y"}]


def columns(schema, *parts):
    return [batch.to_pydict() for batch in result_columns(pa.schema(schema), parts)]


def test_dataframe_columns_are_made_from_any_form_in_order():
    schema = [("y", pa.float32()), ("n", pa.int64())]
    named = ColumnResults.of({"n": np.array([1, 2], "i4"), "y": np.array([0.5, 1.5])})
    two = ColumnResults.of(np.array([[3.0, 4.0]]))
    batch = ColumnResults.of(pa.record_batch({"n": [7], "y": pa.array([None], pa.float64())}))
    assert columns(schema, [(9.0, 9)], [{"y": 8.0, "n": 8}.values()], named, two, batch) == [
        {"y": [9.0, 8.0], "n": [9, 8]},
        {"y": [0.5, 1.5], "n": [1, 2]},
        {"y": [3.0], "n": [4]},
        {"y": [None], "n": [7]},
    ]
    lists = [("value", pa.list_(pa.float32()))]
    assert columns(lists, ColumnResults.of(ARRAYS[0])) == [{"value": ARRAYS[0].tolist()}]
    assert columns(lists, ColumnResults.of({"value": ARRAYS[0]})) == [{"value": ARRAYS[0].tolist()}]


def test_results_that_do_not_fit_are_refused():
    floats = [("y", pa.float32())]
    for results in (np.array([1e300]), {"y": np.array([1e300])}):
        with pytest.raises(
            ValueError, match=r"'y' has the value 1e\+300, which does not fit float32"
        ):
            columns(floats, ColumnResults.of(results))
    with pytest.raises(ValueError, match="results have the columns z, but the schema has y"):
        columns(floats, ColumnResults.of({"z": np.ones(1)}))
    with pytest.raises(ValueError, match=r"shape \(1, 3\), but the schema has 2 columns \(y, z\)"):
        columns([*floats, ("z", pa.int64())], ColumnResults.of(np.ones((1, 3))))
    with pytest.raises(ValueError, match="different numbers of rows"):
        ColumnResults.of({"a": np.ones(1), "b": np.ones(2)})
    with pytest.raises(ValueError, match="complex64 cannot be sent"):
        ColumnResults.of({"a": np.ones(1, "complex64")})
    with pytest.raises(ValueError, match="row 3: a null"):
        travelled(ColumnResults.error("row 3: a null", 2)).rows()


def test_corrupt_remote_streams_are_refused():
    data = bytearray(ColumnResults.of(np.ones((4, 4))).dumped())
    data[8:40] = b"\xee" * 32
    with pytest.raises((ValueError, OSError)):
        ResultUnpickler().load(bytes(data), True).rows()
