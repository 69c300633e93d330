"""The feed in Python: rings between processes, with pyarrow batches in and out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pyarrow as pa
import pytest

import hearth
from hearth.native import _core as core

RingReader, RingWriter = core.RingReader, core.RingWriter


def pair(capacity_bytes: int = 1 << 20) -> tuple[RingWriter, RingReader]:
    """A ring's writer and reader, both in this process."""
    writer = RingWriter(capacity_bytes)
    reader = RingReader.attach(*(os.dup(fd) for fd in writer.fds()))
    writer.close_child_fds()
    return writer, reader


def start_child(code: str, fds: tuple[int, int]) -> subprocess.Popen[str]:
    """Starts Python code that finds the descriptors of its side in `fds`."""
    code = f"from hearth.native._core import *\nfds = {fds}\n" + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-c", code], pass_fds=fds, stdout=subprocess.PIPE, text=True
    )


SAMPLE = pa.record_batch(
    {
        "id": pa.array(["a", None, "", "dd", "e"]),
        "label": pa.array([1, 2, None, 4, 5], pa.int32()),
        "weight": pa.array([0.5, None, 1.5, 2.5, 3.5], pa.float64()),
        "flag": pa.array([True, False, None, True, True]),
        "image": pa.array([b"\x00\x01", b"", None, b"xyz", b"e"]),
        "data": pa.array([[1, 2], [], None, [3], [4, 5]], pa.list_(pa.float32())),
        "pixels": pa.array([[1, 2], [3, 4], None, [5, 6], [7, 8]], pa.list_(pa.uint8(), 2)),
        "viewed": pa.array(["more than twelve bytes"[i:] for i in range(5)], pa.string_view()),
        "seen": pa.array(
            [b"\x00" * 99, b"", None, b"twelve bytes", b"\xff" * 13], pa.binary_view()
        ),
        "large": pa.array(["x", "y", None, "z", ""], pa.large_string()),
        "row": pa.array([{"u": 1, "v": "a"}, None, {"u": 3, "v": None}, {"u": 4, "v": "d"}, None]),
        "deep": pa.array([[[1], []], None, [], [[2, 3]], [[4]]], pa.list_(pa.list_(pa.int16()))),
    }
)


@pytest.mark.parametrize("start", range(6))
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_every_type_and_slice_round_trips(start: int, count: int) -> None:
    writer, reader = pair()
    rows = SAMPLE.slice(start, count)
    assert writer.write(rows)
    assert writer.end()
    if rows.num_rows:
        kind, batch = reader.next(10)
        assert kind == "batch"
        assert batch.num_rows == rows.num_rows
        back = pa.record_batch(batch)
        back.validate(full=True)
        assert back.equals(rows.cast(back.schema))
        assert back.schema.names == rows.schema.names
    assert reader.next(10) == ("end", None)


def test_results_outlive_the_ring() -> None:
    writer, reader = pair(64 << 10)
    writer.write(SAMPLE)
    back = pa.record_batch(reader.next(10)[1])
    writer.close()
    del writer, reader
    assert back.equals(SAMPLE.cast(back.schema))


@pytest.mark.parametrize(
    ("column", "type_name"),
    [
        (pa.array([None]), "null"),
        (pa.array([1], pa.timestamp("us")), "timestamp"),
        (pa.array([1], pa.date32()), "date"),
        (pa.array([1], pa.decimal128(5, 0)), "decimal"),
        (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())), "map"),
        (pa.array(["a"]).dictionary_encode(), "dictionary"),
        (pa.array([["a"]], pa.list_view(pa.string())), "list view"),
    ],
)
def test_unsupported_type_is_named_with_its_column(column: pa.Array, type_name: str) -> None:
    writer, _ = pair()
    with pytest.raises(ValueError, match=f"column 'when' .*{type_name}"):
        writer.write(pa.record_batch({"when": column}))


def test_objects_that_are_not_record_batches_are_refused() -> None:
    writer, _ = pair()
    with pytest.raises(ValueError, match="a record batch is needed"):
        writer.write(pa.array([1, 2]))
    with pytest.raises(AttributeError):
        writer.write([1, 2])


def test_rows_larger_than_the_ring_round_trip() -> None:
    writer, reader = pair(64 << 10)
    rows = pa.record_batch({"image": [b"x" * 1_000_000, b"y", b"z" * 100_000], "n": [1, 2, 3]})
    sender = threading.Thread(target=lambda: writer.write(rows) and writer.end())
    sender.start()
    found = []
    while (entry := reader.next(60))[0] == "batch":
        found.append(pa.record_batch(entry[1]))
    sender.join()
    assert pa.Table.from_batches(found).equals(pa.table(rows))


def test_writer_beside_a_stalled_reader_stops_at_its_deadline() -> None:
    writer, _reader = pair(64 << 10)
    with pytest.raises(TimeoutError, match="took too few rows"):
        writer.write(pa.record_batch({"x": list(range(100_000))}), 0.1)


def test_waiting_lets_other_python_threads_run() -> None:
    writer, reader = pair()
    results: list[str] = []
    waiter = threading.Thread(target=lambda: results.append(reader.next(10)[0]))
    waiter.start()
    writer.flush()
    waiter.join()
    assert results == ["flush"]


def test_killed_reader_ends_the_writer() -> None:
    writer = RingWriter(64 << 10)
    child = start_child(
        "RingReader.attach(*fds).next(60); print('one', flush=True); input()", writer.fds()
    )
    writer.close_child_fds()
    timer = threading.Thread(target=lambda: child.stdout.readline() and child.kill())
    timer.start()
    with pytest.raises(ConnectionError, match="the reading process exited"):
        writer.write(pa.record_batch({"x": list(range(1_000_000))}), 60)
    timer.join()
    assert child.wait() == -signal.SIGKILL


def test_killed_writer_ends_the_reader_after_its_rows() -> None:
    reader = RingReader(1 << 20)
    child = start_child(
        """
        import os, signal, pyarrow as pa
        RingWriter.attach(*fds).write(pa.record_batch({"x": [1, 2, 3]}))
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        reader.fds(),
    )
    reader.close_child_fds()
    assert reader.next(60)[1].num_rows == 3
    with pytest.raises(ConnectionError, match="before it sent all its rows"):
        reader.next(60)
    child.wait()


def test_failure_of_the_writing_process_is_raised_in_the_reading_one() -> None:
    reader = RingReader(1 << 20)
    child = start_child("RingWriter.attach(*fds).fail('KeyError: label')", reader.fds())
    reader.close_child_fds()
    with pytest.raises(hearth.HearthError, match="KeyError: label"):
        reader.next(60)
    child.wait()


def test_reader_that_needs_no_more_makes_writes_return_false() -> None:
    writer, reader = pair(64 << 10)
    reader.close()
    assert writer.write(pa.record_batch({"x": list(range(100_000))}), 10) is False
    assert writer.end() is False


def test_closed_ring_has_no_descriptors() -> None:
    writer = RingWriter()
    assert len(set(writer.fds())) == 2
    writer.close_child_fds()
    with pytest.raises(ValueError, match="no descriptors"):
        writer.fds()


@pytest.mark.parametrize(
    ("column", "total"),
    [
        (pa.array([[float(i)] * 10 for i in range(500)], pa.list_(pa.float32())), 10 * 124_750),
        (pa.array([[1.0] * 784] * 500, pa.list_(pa.float32())), 784 * 500),
        (pa.array([b"\x01" * 150_016] * 40), 150_016 // 64 * 40),
    ],
    ids=["10 floats", "784 floats", "150 KB images"],
)
def test_all_rows_reach_a_consumer_process_in_each_epoch(column: pa.Array, total: int) -> None:
    writer = RingWriter(8 << 20)
    child = start_child(
        """
        source = SpoolSource(*fds)
        for _ in range(3):
            print(*source.drain_epoch(64, "data"))
        """,
        writer.fds(),
    )
    writer.close_child_fds()
    for batch in pa.table({"data": column}).to_batches(max_chunksize=77):
        assert writer.write(batch, 60)
    assert writer.end(60)
    assert child.communicate(timeout=60)[0].split() == [str(len(column)), str(float(total))] * 3
