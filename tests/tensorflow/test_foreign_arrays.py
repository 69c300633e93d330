"""NumPy values from another host: genuine pickles round-trip, forged ones are refused."""

import pickle
import subprocess
import sys
from collections import OrderedDict
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pytest
from pyspark.sql import Row

from hearth.rows import pickles

BASE = np.arange(24).reshape(2, 3, 4)
NUMBERS = ["i1", "u2", ">i4", "u8", "f2", ">f4", "f8", "c8", "c16"]
ARRAYS = {
    **{kind: BASE.astype(kind) for kind in NUMBERS},
    "bool": BASE % 2 == 0,
    "strings": np.array([["a", "bcd"], ["", "é"]]),
    "big-endian strings": np.array(["a", "bcd"]).astype(">U3"),
    "bytes": np.array([b"a", b"bcd"]),
    "void": np.array([b"ab", b"cd"], "V2"),
    "dates": np.array(["2026-01-02", "NaT"], "M8[D]"),
    "times": np.array([1, 2, 3], ">m8[25us]"),
    "time without a unit": np.array([1, 2], "m8"),
    "fields": np.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", ">f8")]),
    "fields of fields": np.zeros(2, [("a", [("x", "f4"), ("y", "U2")]), ("b", "M8[s]")]),
    "columns first": np.asfortranarray(BASE),
    "axes exchanged": BASE.transpose(2, 0, 1),
    "steps": BASE[:, ::2, 1:],
    "steps of columns first": np.asfortranarray(BASE.astype(float))[::-1, 1:],
    "no rows": np.zeros((0, 3)),
    "a number": np.array(5.5),
    "objects": np.array([["a", 1], [None, (2, [3])]], object),
    "objects of arrays": np.array([None, BASE[::2, ::2]], object),
}


def assert_same(ours, wanted):
    assert type(ours) is type(wanted)
    if isinstance(wanted, np.ndarray):
        assert (ours.shape, ours.strides) == (wanted.shape, wanted.strides)
        assert ours.dtype == wanted.dtype
        assert ours.dtype.str == wanted.dtype.str
        assert repr(ours) == repr(wanted)
        assert ours.flags.writeable == wanted.flags.writeable
    else:
        assert repr(ours) == repr(wanted)


@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_round_trips(name, protocol):
    array = ARRAYS[name]
    data = pickle.dumps([array, {"again": array}], protocol)
    ours, pythons = pickles.load(data, from_remote=True), pickle.loads(data)
    assert_same(ours[0], pythons[0])
    assert ours[1]["again"] is ours[0]


SCALARS = [np.float32(1.5), np.int64(-3), np.bool_(True), np.complex64(1 + 2j)]
SCALARS += [np.str_("é"), np.str_(""), np.bytes_(b"x")]
SCALARS += [np.datetime64("2026-01-02", "D"), np.timedelta64(3, "ms")]


@pytest.mark.parametrize("value", SCALARS, ids=repr)
def test_a_scalar_round_trips(value):
    assert_same(pickles.load(pickle.dumps([value]), from_remote=True)[0], value)


def test_arrays_in_two_parts_are_whole_wherever_they_are():
    part = BASE[:, ::2]
    row = Row(a=part, b=1)
    loop = [part]
    loop.append((loop, row))
    value = [row, (part, [part, {"k": (part,)}]), OrderedDict(x=part), loop, {1, 2}, row, (7,)]
    found = pickles.load(pickle.dumps(value), from_remote=True)
    assert found[0] == Row(a=found[0].a, b=1)
    assert found[0].__fields__ == ["a", "b"]
    first = found[0].a
    np.testing.assert_array_equal(first, part)
    for same in (found[1][0], found[1][1][0], found[1][1][1]["k"][0], found[2]["x"], found[3][0]):
        assert same is first
    assert found[3][1][0] is found[3]
    assert found[5] is found[0]
    assert found[3][1][1] is found[0]
    assert found[4:5] + found[6:] == [{1, 2}, (7,)]


def test_remote_pickles_are_read_like_pickle_does():
    value = [Decimal("1.5"), date(2026, 1, 2), Row(a=[1.5], b="x"), {"k": {1}}, frozenset({2})]
    value += [datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=1))), 1 + 2j, 2**70]
    assert pickles.load(pickle.dumps(value), from_remote=True) == value


class Calls:
    """An object whose pickle makes pickle.loads() call a function and set a state."""

    def __init__(self, function, arguments, *state):
        self.call = function, arguments, *state

    def __reduce__(self):
        return self.call


REBUILD = np._core.multiarray._reconstruct
FROM_BUFFER = np._core.numeric._frombuffer


def dtype(name="f8", order="<", shape=None, names=None, fields=None, size=-1, flags=0, *rest):
    state = (3 + bool(rest), order, shape, names, fields, size, -1, flags, *rest)
    return Calls(np.dtype, (name, False, True), state)


def buffered(kind, data=b"\1" * 16, shape=(2,), order="C"):
    return Calls(FROM_BUFFER, (data, kind, shape, order))


def rebuilt(kind, data=b"\1" * 16, shape=(2,)):
    return Calls(REBUILD, (np.ndarray, (0,), b"b"), (1, shape, kind, False, data))


FORGED = {
    "objects in bytes": buffered(dtype("O8", "|", flags=63)),
    "objects in bytes, without their flags": buffered(dtype("O8", "|")),
    "objects in bytes, in two parts": rebuilt(dtype("O8", "|")),
    "a scalar object": Calls(np._core.multiarray.scalar, (dtype("O8", "|"), b"\1" * 8)),
    "fields that are objects": buffered(
        dtype("V8", "|", None, ("a",), {"a": (dtype("O8", "|"), 0)}, 8), b"\1" * 8, (1,)
    ),
    "fields beyond the item": buffered(
        dtype("V8", "|", None, ("a",), {"a": (dtype(), 1 << 20)}, 8), b"\1" * 8, (1,)
    ),
    "fields that are no types": buffered(
        dtype("V8", "|", None, ("a",), {"a": ("f8", 0)}, 8), b"\1" * 8, (1,)
    ),
    "larger items": buffered(dtype(size=1 << 20)),
    "larger strings": buffered(dtype("U2", size=1 << 20)),
    "items with a shape": buffered(dtype(shape=(dtype(), (1 << 20,)))),
    "an unknown order": buffered(dtype(order="x")),
    "an unknown unit": buffered(dtype("M8", "<", None, None, None, -1, 0, (None, (b"x", 1, 1, 1)))),
    "more items than bytes": buffered(dtype(), shape=(3,)),
    "items without end": buffered(dtype(), shape=(1 << 62, 4)),
    "fewer items than bytes": rebuilt(dtype(), shape=(1,)),
    "a negative shape": buffered(dtype(), shape=(-2, -1)),
    "a list for bytes": rebuilt(dtype(), data=[1.5, 2.5]),
    "an array that is called": Calls(np.ndarray, ((2,), "f8")),
    "an array without content": Calls(REBUILD, (np.ndarray, (0,), b"b")),
    "a type alone": dtype(),
    "a type's name for the type": buffered("f8"),
    "long doubles": np.zeros(2, np.longdouble),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_arrays_are_refused(name):
    with pytest.raises(pickle.UnpicklingError, match=r"not accepted from another host|are corrupt"):
        pickles.load(pickle.dumps([1, FORGED[name]]), from_remote=True)


# With the flags 63, NumPy would treat the bytes as object pointers, and dereference them.
@pytest.mark.parametrize("make", [buffered, rebuilt])
@pytest.mark.parametrize("name", ["f8", "S8", "M8"])
def test_forged_flags_alone_change_nothing(name, make):
    plain = np.frombuffer(b"\1" * 16, name)
    forged = make(dtype(name, plain.dtype.str[0], flags=63))
    found = pickles.load(pickle.dumps([1, forged]), from_remote=True)[1]
    assert found.dtype == plain.dtype
    assert (found.dtype.flags, found.dtype.hasobject) == (plain.dtype.flags, False)
    assert found.tobytes() == plain.tobytes()


def test_a_pickle_cannot_change_the_functions_that_make_rows():
    from pyspark.sql.types import _create_row

    before = _create_row.__defaults__
    state = b"N}\x8c\x0c__defaults__K\x07\x85s\x86b"  # (None, {"__defaults__": (7,)})
    data = b"\x80\x04\x8c\x11pyspark.sql.types\x8c\x0b_create_row\x93" + state + b"."
    with pytest.raises(
        pickle.UnpicklingError, match="a pickle that modifies a function is not accepted"
    ):
        pickles.load(data, from_remote=True)
    assert _create_row.__defaults__ == before


def test_booleans_are_zeros_and_ones():
    data = pickle.dumps(np.ones(8, bool)).replace(b"\1" * 8, b"\2\xff" * 4)
    mask = pickles.load(data, from_remote=True)
    assert mask.view(np.uint8).tolist() == [1] * 8
    assert np.arange(8)[mask].tolist() == list(range(8))


DEEP = b")" + b"\x85" * 500_000
CALL = b"cdecimal\nDecimal\n"
UNSOUND = {
    "a key deeper than the stack": b"}" + DEEP + CALL + b"s",
    "a set's item deeper than the stack": b"\x8f(" + DEEP + CALL + b"\x90",
    "calls in each other": b"cbuiltins\nset\n" * 3000 + b")" + b"\x85R" * 3000,
    "a memo without end": CALL + b"r\xff\xff\xff\x0f",
    "bytes that are not there": CALL + b"B\xff\xff\xff\x7fabc",
    "an opcode of old": CALL + b"I1\n",
    "an extension": CALL + b"\x82\x01",
    "no end": CALL[:-1],
    "values from below a mark": CALL + b"(\x85",
    "nothing": b"",
}


@pytest.mark.parametrize("name", UNSOUND)
def test_pickles_that_crash_pythons_reader_are_refused(name):
    with pytest.raises(pickle.UnpicklingError, match=r"are corrupt, or have tuples nested"):
        pickles.load(b"\x80\x04" + UNSOUND[name] + b"." * (name != "no end"), from_remote=True)


def test_a_deep_key_of_plain_data_is_not_hashed():
    from hearth.native._core import load_plain

    assert load_plain(b"\x80\x04}" + DEEP + b"Ns.") is None
    doubled = b")\x94" + b"".join(b"h%ch%c\x86\x94" % (i, i) for i in range(60))  # 2**60 items
    assert load_plain(b"\x80\x04}" + doubled + b"Ns.") is None
    assert load_plain(pickle.dumps({(1, ("a", 2)): 3})) == {(1, ("a", 2)): 3}


def test_output_of_picklers_is_accepted():
    from hearth.native._core import pickle_is_sound

    loop = ([],)
    loop[0].append(loop)  # a tuple that contains itself: POP and POP_MARK
    wide = ([], 1, 2, 3)
    wide[0].append(wide)
    rows = [loop, wide, {1, 2}, frozenset({3}), bytearray(b"x"), 2**70, 2**3000, [1] * 2500]
    rows += [list(ARRAYS.values()), SCALARS, Row(a=1), Decimal(1), b"x" * 70000, "x" * 70000]
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        for maker in (pickle.dumps, pickle._dumps):
            assert pickle_is_sound(maker(rows, protocol))


# Runs in a separate process, because a failure would kill the process or exhaust its memory.
FUZZ = r"""
import pickle, random, resource, sys, time
import numpy as np
from pyspark.sql import Row
from hearth.rows import pickles
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
part = np.arange(24.0).reshape(4, 6)[:, ::2]
kept = [np.arange(4.0), part, np.float32(1), np.array(["ab", "c"]), np.array([1, 2], "M8[s]")]
kept += [np.array([part, None], object), np.zeros(2, [("a", "f4"), ("b", "i8")]), np.ones(3, bool)]
seeds = [pickle.dumps([value, Row(a=value)], p) for value in kept for p in (3, 5)]
draw = random.Random(int(sys.argv[1]))
end, read, refused = time.monotonic() + float(sys.argv[2]), 0, 0
interesting = b"O8f4f8U2V1|<>=NK\x00\x01\x7f\xffrqhj(tb.R\x93\x94\x85\x86"
while time.monotonic() < end:
    bad = bytearray(draw.choice(seeds))
    for _ in range(draw.randrange(1, 6)):
        at = draw.randrange(len(bad))
        if draw.random() < 0.2:
            del bad[at : at + draw.randrange(1, 4)]
        elif draw.random() < 0.3:
            other = draw.choice(seeds)
            begin = draw.randrange(len(other))
            bad[at:at] = other[begin : begin + draw.randrange(1, 40)]
        else:
            bad[at % len(bad)] = draw.choice(interesting)
        bad = bad or bytearray(b".")
    try:
        value = pickles.load(bytes(bad), from_remote=True)
    except pickle.UnpicklingError:
        refused += 1
        continue
    read += 1
    try:
        repr(value)
        [np.asarray(item).tobytes() for item in value if isinstance(item, np.ndarray)]
        pickle.dumps(value)
    except Exception:
        pass  # it is touched: the process must be there afterwards
print(read, refused)
"""


def test_random_damage_ends_no_process():
    done = subprocess.run(
        [sys.executable, "-c", FUZZ, "5", "4"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-2000:]}"
    read, refused = map(int, done.stdout.split())
    assert read > 100
    assert refused > 1000
