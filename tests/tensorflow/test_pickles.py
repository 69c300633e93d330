"""Pickled rows round-trip through Hearth's reader of plain data."""

import os
import pickle
import random
from contextlib import suppress
from datetime import date
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hearth.native._core import Pieces, load_columns, load_plain
from pyspark.sql import Row

from hearth.cluster.node import minibatches
from hearth.rows import pickled_arrays, pickles

SHARED = [1.0, 2.0]
LISTS = [[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]]
PLAIN = {
    "floats": [[0.5, -1e300, float("inf")], [], [3.25]],
    "long lists": [[float(i) for i in range(2500)], list(range(2500))],
    "recurring floats": [[0.0, -0.0, 0.5] * 900 + [i / 7 for i in range(9000)] + [-0.0, 0.0] * 9],
    "mixed lists": [[1, 2.5, "three", None, [4.0, [5]], True]],
    "integers": [0, 255, 256, 65535, 65536, -1, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)],
    "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ([1.0, 2.0], 7)],
    "text and bytes": ["", "é\U0001f600", "x" * 300, "\ud800", b"", b"\x00" * 300, b"y" * 70000],
    "dicts": [{}, {"a": 1}, {"a": [1.5, 2.5], "b": {"c": (None, False)}, 3: "d"}],
    "shared": [SHARED, SHARED, (SHARED, {"again": SHARED})],
}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", PLAIN)
def test_plain_data_is_read_as_python_does(name, protocol):
    data = pickle.dumps(PLAIN[name], protocol)
    if protocol == 2 and name == "text and bytes":  # bytes are pickled as a call
        assert load_plain(data) is None
    else:
        ours, pythons = load_plain(data), pickle.loads(data)
        assert ours == pythons
        assert repr(ours) == repr(pythons)  # compares types too, as 1 == 1.0 == True
    assert pickles.load(data, from_remote=False) == PLAIN[name]


def test_shared_objects_stay_shared():
    first, second, (third, table) = load_plain(pickle.dumps(PLAIN["shared"]))
    assert first is second is third is table["again"]


VALUES = [[Decimal(1)], [1 + 2j], [2**64], {1, 2}, [np.float32(1)], [date(2026, 1, 2)], [Row(a=1)]]


@pytest.mark.parametrize("value", VALUES)
def test_other_pickles_are_left_to_pythons_unpickler(value):
    data = pickle.dumps(value)
    assert load_plain(data) is None
    assert pickles.load(data, from_remote=False) == value
    assert pickles.load(data, from_remote=True) == value


class Calls:
    """An object whose pickle makes pickle.loads() call a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


CALLED = [os.mkdir, partial, eval, getattr, np.load, np.dtype.newbyteorder]


@pytest.mark.parametrize("function", CALLED)
def test_remote_pickles_run_no_code(function, tmp_path):
    target = tmp_path / "made"
    data = pickle.dumps([np.arange(3), Calls(function, str(target))])
    with pytest.raises(pickle.UnpicklingError, match="not accepted from another host"):
        pickles.load(data, from_remote=True)
    assert not target.exists()
    with suppress(Exception):
        pickles.load(data, from_remote=False)
    assert target.exists() == (function is os.mkdir)


def test_a_list_that_contains_itself_is_read():
    loop = [1]
    loop.append(loop)
    again = load_plain(pickle.dumps(loop))
    assert again[0] == 1
    assert again[1] is again


def check_damaged(load, whole):
    """Truncated pickles must be refused; with changed bytes they may be read as other data."""
    draw = random.Random(4)
    for cut in range(0, len(whole), 97):
        assert load(whole[:cut]) is None
    for _ in range(2000):
        bad = bytearray(whole[:2000])
        for _ in range(3):
            bad[draw.randrange(len(bad))] = draw.randrange(256)
        load(bytes(bad))
        load(bytes(bad) + b".")  # "." ends a pickle


def test_damaged_pickles_are_refused_or_read_without_a_crash():
    check_damaged(load_plain, pickle.dumps(list(PLAIN.values())))


def test_pickles_run_no_code():
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was obeyed",))

    assert load_plain(pickle.dumps([1, Trap()])) is None


@pytest.mark.parametrize(
    "sizes", [[], [10] * 5, [1 << 17], [3 << 20, 5, 1 << 20, 0, (1 << 17) - 1]]
)
def test_large_pickles_are_sent_in_parts_and_reassembled(sizes):
    sent = [random.Random(size).randbytes(size) for size in sizes]
    received, whole = [], b""
    for sent_batch in pickles.batches_of_pickles(sent):
        batch = pa.record_batch(sent_batch)
        assert batch.num_rows == sent_batch.num_rows
        assert batch.nbytes < pickles.PIECE_BYTES + 100
        for part, last in zip(*batch.to_pydict().values(), strict=True):
            whole += part
            if last:
                received.append(whole)
                whole = b""
    assert received == sent
    assert whole == b""


def test_pickles_are_bytes_like():
    with pytest.raises(TypeError, match="bytes-like"):
        Pieces([b"good", 3])
    assert pa.record_batch(Pieces([b"good", memoryview(b"too")], False)).to_pydict() == {
        "piece": [b"good", b"too"],
        "last": [True, False],
    }


COLUMNS = {
    "floats": [0.5, -1.0, 3.25],
    "ints": [1, -2, 2**62],
    "many": [float(i) for i in range(2500)],
    "lists": [[float(i + j) for j in range(7)] for i in range(1200)],
    "long lists": [[float(i + j) for j in range(2100)] for i in range(3)],
    "lists of ints": [[i, 300 * i, 70000 * i] for i in range(5)],
    "tuples": [(float(i), i, [i, i + 1], [0.5, float(i)]) for i in range(1100)],
    "one row": [[1.0, 2.0]],
    "the same list": [SHARED] * 5,
    "tuples of one": [(1.5,), (2.5,)],
    "a list twice in a row": [(row, row) for row in LISTS],
    "the first row's list again": [(row, LISTS[0]) for row in LISTS],
    "the first row's list before": [(LISTS[0], row) for row in LISTS],
    "the next row's list": [(row, LISTS[i - 2]) for i, row in enumerate(LISTS)],
    "a list in three fields": [(row, i, row, 0.5, row) for i, row in enumerate(LISTS)],
    "a long list twice in a row": [(row, row) for row in ([float(i) for i in range(2500)],)],
    "the same row": [(SHARED, 1, LISTS[0])] * 4,
}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", COLUMNS)
def test_rows_of_numbers_are_the_arrays_that_numpy_makes_of_them(name, protocol):
    rows = COLUMNS[name]
    chunk = pickled_arrays.load(pickle.dumps(rows, protocol))
    ours = minibatches.arrays_of_rows([chunk], None)
    if chunk.tuples:
        expected = tuple(np.asarray(values) for values in zip(*rows, strict=True))
    else:
        ours, expected = (ours,), (np.asarray(rows),)
    for array, wanted in zip(ours, expected, strict=True):
        assert array.dtype == wanted.dtype
        np.testing.assert_array_equal(array, wanted)
    assert repr(chunk.rows()) == repr(rows)
    assert repr(chunk.slice(1, 2).rows()) == repr(rows[1:3])


def test_columns_that_share_lists_do_not_share_memory():
    chunk = pickled_arrays.load(pickle.dumps([(x, x, LISTS[0]) for x in LISTS]))
    first, second, other = chunk.arrays
    first[:] = 0
    np.testing.assert_array_equal(second, LISTS)
    np.testing.assert_array_equal(other, LISTS[:1] * 3)


def test_a_large_list_in_many_rows_stays_one_list():
    rows = [[float(i) for i in range(1000)]] * 20_000  # an array has 160 MB, the pickle 49 KB
    data = pickle.dumps(rows)
    assert load_columns(data) is None
    again = load_plain(data)
    assert len(again) == 20_000
    assert again[0] is again[-1]


def draw_rows(draw):
    """Random rows of up to three fields that share a few lists; most rows can become columns."""
    width, kind = draw.choice([1, 2, 3]), draw.choice([float, int])
    pool = [[kind(draw.randrange(300)) for _ in range(width)] for _ in range(draw.randrange(1, 6))]
    if draw.random() < 0.1:
        pool[-1].append(kind(1))
    fields = [draw.choice("nls") for _ in range(draw.randrange(1, 4))]
    rows = []
    for _ in range(draw.randrange(1, 8)):
        if rows and draw.random() < 0.2:
            rows.append(draw.choice(rows))
            continue
        new = [kind(draw.randrange(300)) for _ in range(width)]
        row = [{"n": draw.randrange(9), "l": new, "s": draw.choice(pool)}[f] for f in fields]
        if draw.random() < 0.3:
            row[-1] = row[0]
        rows.append(tuple(row))
    return rows if len(fields) > 1 or draw.random() < 0.5 else [row[0] for row in rows]


def test_random_rows_that_share_lists_make_the_columns_that_python_makes():
    draw = random.Random(20)
    made = 0
    for _ in range(3000):
        rows = draw_rows(draw)
        chunk = pickled_arrays.load(pickle.dumps(rows, draw.choice([2, 5])))
        if chunk is not None:
            made += 1
            assert repr(chunk.rows()) == repr(rows)
    assert made > 1500


def draw_value(draw, pool, depth=0):
    """Random plain data; 30 % are earlier values, which may later grow and contain themselves."""
    if pool and draw.random() < 0.3:
        return draw.choice(pool)
    if depth > 3 or draw.random() < 0.3:
        return draw.choice([1, -5, 70000, 2.5, None, True, "text", b"bytes", "", 2**40])
    parts = [draw_value(draw, pool, depth + 1) for _ in range(draw.randrange(5))]
    kind = draw.choice("ltdg")
    value = {"l": parts, "t": tuple(parts), "d": dict(enumerate(parts)), "g": parts}[kind]
    if kind == "g" and pool:
        grown = draw.choice(pool)
        if type(grown) is list:
            grown.append(value)
        elif type(grown) is dict:
            grown["more"] = value
    pool.append(value)
    return value


def assert_alike(ours, pythons, pairs):
    """Checks that values and types are equal, and that the same positions share objects."""
    assert type(ours) is type(pythons)
    if not isinstance(ours, (list, tuple, dict)) or ours == ():
        assert ours == pythons
        return
    if id(pythons) in pairs:
        assert pairs[id(pythons)] is ours
        return
    assert all(known is not ours for known in pairs.values())
    pairs[id(pythons)] = ours
    assert len(ours) == len(pythons)
    if isinstance(ours, dict):
        assert list(ours) == list(pythons)
        ours, pythons = ours.values(), pythons.values()
    for our, python in zip(ours, pythons, strict=True):
        assert_alike(our, python, pairs)


def test_random_values_that_share_objects_are_read_as_python_does():
    draw = random.Random(21)
    read = 0
    for _ in range(1000):
        pool = []
        rows = [draw_value(draw, pool) for _ in range(draw.randrange(1, 6))]
        data = pickle.dumps(rows, draw.choice([3, 4, 5]))
        ours, pythons = load_plain(data), pickle.loads(data)
        if ours is not None:  # None: a tuple that contains itself is left to Python's reader
            read += 1
            assert_alike(ours, pythons, {})
        assert_alike(pickles.load(data, from_remote=True), pythons, {})
    assert read > 800


NO_COLUMNS = [
    *([], [[]], [[1.0], [1.0, 2.0]], [1, 2.0], [[1, 2.0]], [(1,), (1, 2)], [(1,), [1]]),
    *([(1,), (1.0,)], [()], ["text"], [b"bytes"], [None], [True], [[[1.0]]], [{"a": 1}], [2**64]),
    *(5, (1, 2)),
    *([1] * 1001 + [[2]], [[1]] * 1001 + [2], [([1], 2), (3, [4])]),
]


@pytest.mark.parametrize("rows", NO_COLUMNS, ids=lambda rows: repr(rows)[:30])
def test_rows_that_do_not_form_columns_are_refused(rows):
    assert load_columns(pickle.dumps(rows)) is None


def test_damaged_pickles_become_columns_or_are_refused_without_a_crash():
    check_damaged(load_columns, pickle.dumps(COLUMNS["tuples"]))


def test_chunks_of_the_same_and_of_different_types_form_one_minibatch():
    first, second = (pickled_arrays.load(pickle.dumps(rows)) for rows in ([[1.0]], [[2.0], [3.0]]))
    other = pickled_arrays.load(pickle.dumps([[4]]))
    np.testing.assert_array_equal(
        minibatches.arrays_of_rows([first, second], None), [[1], [2], [3]]
    )
    both = minibatches.arrays_of_rows([first, other], None)
    np.testing.assert_array_equal(both, [[1], [4]])
    mapped = minibatches.arrays_of_rows([second], ["x"])
    np.testing.assert_array_equal(mapped["x"], [2, 3])


def test_pickles_of_the_same_type_are_one_chunk():
    def load(*chunks):
        (batch,) = pickles.batches_of_pickles(pickle.dumps(rows) for rows in chunks)
        return pickled_arrays.load_batch(pa.record_batch(batch))

    assert load([[1.0]], [[2.0], [3.0]]).rows() == [[1.0], [2.0], [3.0]]
    assert load([[1.0]], [[2]]) is None
    assert load([[1.0]], ["text"]) is None
    large = pickle.dumps([[0.5] * 300_000])
    first, *_ = pickles.batches_of_pickles([large])
    assert pickled_arrays.load_batch(pa.record_batch(first)) is None  # an incomplete pickle
