"""libhearth_feed.so through ctypes, as a feeder in another language would use it."""

from __future__ import annotations

import ctypes
import os

import pyarrow as pa
import pytest

import hearth
from hearth import native
from hearth.native import _core as core

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    lib = ctypes.CDLL(str(native.DIRECTORY / "libhearth_feed.so"))
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_double
    lib.hearth_ring_open.restype = pointer
    lib.hearth_ring_open.argtypes = [ctypes.c_int, ctypes.c_int]
    lib.hearth_ring_write_arrow.argtypes = [pointer, pointer, pointer, number]
    lib.hearth_ring_flush.argtypes = [pointer, number]
    lib.hearth_ring_end.argtypes = [pointer, number]
    lib.hearth_ring_fail.argtypes = [pointer, text]
    lib.hearth_ring_close.argtypes = [pointer]
    lib.hearth_ring_error.restype = text
    lib.hearth_ring_error.argtypes = [pointer]
    return lib


@pytest.fixture
def ends(library: ctypes.CDLL):
    """A reader in Python, and its ring opened by the C interface."""
    reader = core.RingReader(64 << 10)
    ring = library.hearth_ring_open(*(os.dup(fd) for fd in reader.fds()))
    reader.close_child_fds()
    yield reader, ring
    library.hearth_ring_close(ring)


def write(library: ctypes.CDLL, ring: int, rows: pa.RecordBatch, timeout_s: float = 10) -> int:
    schema, array = rows.__arrow_c_array__()
    return library.hearth_ring_write_arrow(
        ring,
        _capsule_pointer(schema, b"arrow_schema"),
        _capsule_pointer(array, b"arrow_array"),
        timeout_s,
    )


def test_rows_marks_and_end_arrive(library: ctypes.CDLL, ends) -> None:
    reader, ring = ends
    rows = pa.record_batch({"x": [1, 2, 3]})
    assert write(library, ring, rows) == 1
    assert library.hearth_ring_flush(ring, 10) == 1
    assert library.hearth_ring_end(ring, 10) == 1
    assert library.hearth_ring_error(ring) == b""
    assert pa.record_batch(reader.next(10)[1]).equals(rows)
    assert [reader.next(10)[0] for _ in range(2)] == ["flush", "end"]


def test_failures_have_a_message_and_never_cross_as_exceptions(library: ctypes.CDLL, ends) -> None:
    reader, ring = ends
    assert write(library, ring, pa.record_batch({"t": pa.array([1], pa.date32())})) == -1
    assert b"column 't' has Arrow type date" in library.hearth_ring_error(ring)
    assert write(library, ring, pa.record_batch({"x": list(range(100_000))}), 0.05) == -1
    assert b"deadline" in library.hearth_ring_error(ring)
    reader.close()
    assert library.hearth_ring_flush(ring, 10) == 0
    assert library.hearth_ring_error(ring) == b""


def test_failure_of_the_feeder_reaches_the_reader(library: ctypes.CDLL, ends) -> None:
    reader, ring = ends
    library.hearth_ring_fail(ring, b"java.io.IOException: disk")
    with pytest.raises(hearth.HearthError, match=r"java\.io\.IOException: disk"):
        reader.next(10)


def test_descriptors_that_are_not_a_rings_are_refused(library: ctypes.CDLL) -> None:
    read_end, write_end = os.pipe()
    assert library.hearth_ring_open(read_end, write_end) is None
    assert b"not the memory of a ring" in library.hearth_ring_error(None)
