"""A model applied to a partition by three threads: their overlap, and the end of all threads."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest

from hearth.rows import applied as applied_module
from hearth.rows import pipe
from hearth.rows.applied import ModelColumns, applied
from hearth.rows.model_thread import start_in_model_thread
from hearth.rows.pipe import Pipe

MADE = pa.schema([("y", pa.float64())])
WAIT_S = 60


def batches(count, rows=4):
    for at in range(count):
        yield pa.record_batch({"x": np.arange(at * rows, (at + 1) * rows, dtype="f8")})


def run(source, model, batch_size=4):
    return applied(ModelColumns(("x",), ("x",), ("x",), batch_size), MADE, source, lambda: model)


def values(found):
    return pa.Table.from_batches(list(found))["y"].to_pylist()


def test_reading_and_output_overlap_with_the_model():
    began, read_on, taken = threading.Event(), threading.Event(), threading.Event()

    def source():
        for at, batch in enumerate(batches(3)):
            if at == 2:
                assert began.wait(WAIT_S)
                read_on.set()
            yield batch

    def model(arrays):
        if arrays["x"][0] == 0:
            began.set()
            assert read_on.wait(WAIT_S)
        if arrays["x"][0] == 8:  # by then Spark has the first result
            assert taken.wait(WAIT_S)
        return [arrays["x"] * 2]

    found = run(source(), model)
    first = next(found)
    taken.set()
    assert first["y"].to_pylist() + values(found) == [2.0 * x for x in range(12)]


def test_a_model_is_loaded_and_called_in_one_thread_and_only_for_rows():
    threads = []

    def load():
        threads.append(threading.current_thread())
        return lambda arrays: threads.append(threading.current_thread()) or [arrays["x"]]

    columns = ModelColumns(("x",), ("x",), ("x",), 4)
    for count in (0, 1, 1):
        list(applied(columns, MADE, batches(count), load))
    assert len(threads) == 4 and len(set(threads)) == 1


@pytest.mark.parametrize("where", ["source", "model"])
def test_an_error_is_raised_and_the_model_thread_continues(where):
    def source():
        yield from batches(2)
        if where == "source":
            raise OSError("no more rows")

    def model(arrays):
        if where == "model" and arrays["x"][0] > 0:
            raise OSError("no more results")
        return [arrays["x"]]

    with pytest.raises(OSError, match="no more"):
        list(run(source(), model))
    assert values(run(batches(2), lambda arrays: [arrays["x"]])) == list(range(8))


def test_a_consumer_that_stops_ends_the_other_threads(monkeypatch):
    monkeypatch.setattr(pipe, "MOST_BYTES", 1)
    ended = threading.Event()

    def source():
        try:
            yield from batches(1000)
        finally:
            ended.set()

    found = run(source(), lambda arrays: [arrays["x"]])
    next(found)
    found.close()
    assert start_in_model_thread(lambda: "free").result(WAIT_S) == "free"
    assert ended.wait(WAIT_S)


def test_a_pipe_holds_a_limited_number_of_bytes_but_at_least_one_item(monkeypatch):
    monkeypatch.setattr(pipe, "MOST_BYTES", 10)
    made: Pipe[int] = Pipe(lambda item: item)
    asked = []

    def source():
        for item in (20, 4, 5, 6):
            asked.append(item)
            yield item

    made.fill_in_thread(source(), "test")
    items = iter(made)
    assert [next(items) for _ in range(4)] == [20, 4, 5, 6]
    assert list(items) == [] and asked == [20, 4, 5, 6]
    assert applied_module._bytes([np.array([b"abc", "de"], object), np.ones(3)]) == 29
    full: Pipe[int] = Pipe(lambda item: item)
    assert full._has_room(20)
    full._put(4)
    assert full._has_room(6) and not full._has_room(7)
