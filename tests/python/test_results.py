"""Return values of main functions: transferred as data, never as code."""

from __future__ import annotations

import enum
import math

import numpy as np
import pytest

from hearth.cluster import results
from hearth.cluster.node.context import NodeContext

CONTEXT = NodeContext(0, "worker", 0, {"worker": ["h:1"]}, "", "")


class Phase(enum.IntEnum):
    TRAIN = 2


def carried(value, context=CONTEXT):
    pieces = []
    results.give(context, value, lambda data: pieces.extend(results.pieces(data)))
    return pieces


def back(value):
    return results.unpacked(results.received(1, carried(value)))


@pytest.mark.parametrize(
    "value",
    [
        0, True, "größe\n", "", 2**80, [1, [2.5, None]], (1, ("a",)), {("x", 1): []}, [],
        {"a": {1: (2,)}, None: b"\x00"}, {"tuple": [1]},
    ],
)  # fmt: skip
def test_plain_values_round_trip(value):
    assert back(value) == value
    assert type(back(value)) is type(value)


def test_numbers_of_numpy_and_of_enumerations_are_numbers():
    found = back({"a": np.float64(0.5), "b": np.int32(3), "c": Phase.TRAIN, "d": math.nan})
    assert (found["a"], found["b"], found["c"]) == (0.5, 3, 2) and math.isnan(found["d"])
    assert [type(v) for v in found.values()] == [float, int, int, float]


def test_large_arrays_round_trip_in_several_events():
    array = np.arange(300_000, dtype=np.float32).reshape(3, -1)
    pieces = carried([array])
    assert len(pieces) > 1 and max(map(len, pieces)) <= 600_000
    (found,) = results.unpacked(results.received(0, pieces))
    assert found.dtype == np.float32 and (found == array).all()


def test_none_is_not_sent():
    assert carried(None) == []


@pytest.mark.parametrize(
    "value", [object(), {"x": [object()]}, np.array([object()]), {1, 2}, print]
)
def test_an_unsupported_value_fails_only_when_it_is_read(value):
    pieces = carried(value)
    with pytest.raises(TypeError, match=r"^rank 1's main function returned a \S+: return numbers"):
        results.received(1, pieces)


def test_an_oversized_value_fails_only_when_it_is_read(monkeypatch):
    monkeypatch.setattr(results, "_MOST_BYTES", 1000)
    with pytest.raises(TypeError, match="returned a bytes of 0 MB, more than 0 MB"):
        results.received(1, carried(b"x" * 2000))


def test_a_value_that_fails_to_serialize_is_reported():
    class Lazy:
        @property
        def dtype(self):
            raise RuntimeError("not now")

    with pytest.raises(TypeError, match="not now"):
        results.received(1, carried([Lazy()]))
