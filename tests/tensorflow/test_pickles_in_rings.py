"""A node reads pickles in place in its feed task's ring; values that it retains stay valid."""

import json
import os
import pickle
from decimal import Decimal

import pyarrow as pa
import pytest
from hearth.native._core import FeedLink, FeedQueue, FeedReader, Pieces, RingReader, RingWriter

from hearth.rows import pickled_arrays, pickles

ANNOUNCED = {
    "op": "partition",
    "feed": "a",
    "index": 0,
    "queue": "input",
    "mode": "train",
    "format": "pickle",
    "batched": False,
    "keep": False,
    "fenced": False,
}


def make_feed(capacity=1 << 16):
    """The row ring of a feed task, and the reader of its node, both in this process."""
    writer, results = RingWriter(capacity), RingReader()
    rows, answers = map(os.dup, writer.fds()), map(os.dup, results.fds())
    link = FeedLink(tuple(rows), tuple(answers), False, tell=lambda message: None)
    queue = FeedQueue(lambda event: None, lambda: "")
    queue.announce(link, json.dumps(ANNOUNCED))
    return writer, FeedReader(queue)


def through_ring(sent, unpickler):
    """Sends pickles through a ring, and yields their values, read in place."""
    writer, reader = make_feed()
    for pieces in pickles.batches_of_pickles(sent):
        assert writer.write(pieces, 10)
        batch, pickled, _, from_remote = reader.next()
        assert pickled
        values = list(unpickler.values(batch, from_remote))
        reader.opened(len(values), unpickler.within_pickle)
        if values:
            reader.give(len(values))
        yield from values


def test_pickles_are_read_in_place_from_a_ring(monkeypatch):
    monkeypatch.setattr(pickles, "PIECE_BYTES", 20_000)
    monkeypatch.setattr(pickles, "_BATCH_BYTES", 30_000)
    lists = [[float(i)] * (i * 37 % 5000) for i in range(60)]
    values = [{"a": [1.5, 2.5]}, *lists, [Decimal(1)] * 3000, [b"x" * 45_000, "y"], *lists]
    unpickler = pickles.Unpickler()
    assert list(through_ring(map(pickle.dumps, values), unpickler)) == values
    assert not unpickler.within_pickle


def test_arrays_of_a_ring_stay_when_their_batch_is_overwritten():
    writer, reader = make_feed()
    found = []
    for i in range(12):
        writer.write(Pieces([pickle.dumps([[float(i)] * 2000])]), 10)
        batch, *_ = reader.next()
        found.append(pickled_arrays.load_batch(batch).arrays[0])
        found.append(pa.record_batch(batch).column(0))
        reader.opened(1, False)
        reader.give(1)
    for i in range(12):
        assert found[2 * i].tolist() == [[float(i)] * 2000]
        assert pickle.loads(found[2 * i + 1][0].as_py()) == [[float(i)] * 2000]


def test_a_batch_keeps_its_space_in_the_ring_until_it_is_opened():
    writer, reader = make_feed()
    writer.write(Pieces([b"a" * 40_000]), 10)
    batch, *_ = reader.next()
    assert writer.write(Pieces([b"b" * 40_000]), 10)  # after the first batch
    with pytest.raises(TimeoutError):
        writer.write(Pieces([b"c" * 40_000]), 0.05)
    assert bytes(batch.pieces()[0][0]) == b"a" * 40_000
    reader.opened(1, False)
    assert writer.write(Pieces([b"c" * 40_000]), 10)
