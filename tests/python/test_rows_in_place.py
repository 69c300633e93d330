"""The trainer reads large values of local files in place, and gets the same values as by copies."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import threading

import pyarrow as pa
import pytest
from hearth.native._core import RingReader, RingWriter, SpoolSource
from lmdb_files import datum, write_lmdb

from hearth import HearthError
from hearth import data as sources
from hearth.caffeonspark.tools.sequence_keys import pair_key
from hearth.caffeonspark.tools.sequence_parts import write_records
from hearth.sources.rank_rows import RankRows

IMAGES, BYTES = 60, 150_000


def images(size):
    made = random.Random(1)
    return {f"{i:08d}": made.randbytes(size + i) for i in range(IMAGES)}


def lmdb(folder, data):
    records = {key: datum(value, 7, (3, 9, 9), encoded=True) for key, value in data.items()}
    return RankRows(sources.lmdb(write_lmdb(folder / "lmdb", records)).pin().in_place())


def sequence(folder, data):
    with open(folder / "sequence", "wb") as file:
        write_records(file, [(pair_key(key, "7"), value) for key, value in data.items()])
    return RankRows(sources.sequence_file(str(folder / "sequence")).pin().in_place())


def copied(batch):
    place = batch.schema.get_field_index("data")
    return batch.set_column(place, "data", batch.column(place).cast("binary"))


@contextlib.contextmanager
def written(batches):
    """Descriptors of a ring to which a thread writes the batches."""

    def write():
        for batch in batches:
            writer.write(batch)
        writer.end()

    writer = RingWriter()
    thread = threading.Thread(target=write)
    thread.start()
    yield [os.dup(fd) for fd in writer.fds()]
    thread.join()


def through_a_ring(batches):
    found = []
    with written(batches) as fds:
        reader = RingReader.attach(*fds)
        while (entry := reader.next())[0] == "batch":
            found.append(pa.record_batch(entry[1]))
    return found


def ring_bytes(batches):
    """The bytes that the batches need in a ring and in a spill file."""
    with written(batches) as fds:
        return RingReader.attach(*fds).drain()[1]


SOURCES = pytest.mark.parametrize("source", [lmdb, sequence])


@SOURCES
def test_only_positions_are_sent_and_values_equal_copies(tmp_path, source):
    data = images(BYTES)
    rows = source(tmp_path, data)
    assert ring_bytes(rows.read(0, 1)) < IMAGES * 2000
    assert ring_bytes(map(copied, rows.read(0, 1))) > IMAGES * BYTES
    found = pa.Table.from_batches(through_a_ring(rows.read(0, 1)))
    assert found.column("id").to_pylist() == list(data)
    assert found.column("data").to_pylist() == list(data.values())


@SOURCES
def test_small_values_are_copied(tmp_path, source):
    rows = source(tmp_path, images(1000))
    assert ring_bytes(rows.read(0, 1)) > IMAGES * 1000
    assert through_a_ring(rows.read(0, 1))[0].schema.field("data").type == pa.binary()


def drained(batches, epochs):
    """(rows, sum) of the minibatches of each epoch, and the stream's digest."""
    with written(batches) as fds:
        source = SpoolSource(*fds)
        return [source.drain_epoch(7, "data") for _ in range(epochs)], source.digest()


@SOURCES
def test_a_spool_has_the_same_epochs_and_the_same_digest(tmp_path, source):
    rows = source(tmp_path, images(BYTES))
    found = drained(rows.read(0, 1), 3)
    assert found == drained(map(copied, rows.read(0, 1)), 3)
    assert len(set(found[0])) == 1
    assert found[0][0][0] == IMAGES


@SOURCES
def test_a_file_modified_between_epochs_is_an_error(tmp_path, source):
    rows = source(tmp_path, images(BYTES))
    with written(rows.read(0, 1)) as fds:
        spooled = SpoolSource(*fds)
        spooled.drain_epoch(7, "data")
    (path,) = itertools.chain(tmp_path.glob("sequence"), tmp_path.glob("lmdb/data.mdb"))
    os.utime(path, (1, 1))
    with pytest.raises(HearthError, match=rf"{path} was modified .*on host .*start the run"):
        spooled.drain_epoch(7, "data")
