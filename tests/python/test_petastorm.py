"""hearth.petastorm's converter on Parquet files: each row once per epoch over all shards."""

from __future__ import annotations

import importlib.util
import itertools
import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import hearth.data
from hearth.petastorm import TransformSpec
from hearth.petastorm.spark import SparkDatasetConverter

pytestmark = pytest.mark.torch

ROWS = 103


@pytest.fixture
def converter(tmp_path):
    for part in range(3):
        ids = np.arange(part, ROWS, 3)
        table = pa.table(
            {
                "id": ids,
                "x": [[float(i), i + 0.5] for i in ids],
                "text": [f"row {i}" for i in ids],
            }
        )
        pa.parquet.write_table(table, tmp_path / f"{part}.parquet", row_group_size=8)
    return SparkDatasetConverter(str(tmp_path), hearth.data.parquet(str(tmp_path)).pin())


def taken(converter, batches=None, **options):
    """Reads batches from a loader; returns the ids of each."""
    with converter.make_torch_dataloader(**options) as loader:
        return [batch["id"].tolist() for batch in itertools.islice(loader, batches)]


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_all_shards_deliver_each_row_once_per_epoch(converter, shards):
    assert len(converter) == ROWS
    for epochs in (1, 3):
        found = [
            taken(converter, batch_size=7, num_epochs=epochs, cur_shard=shard, shard_count=shards)
            for shard in range(shards)
        ]
        counts = np.bincount([i for of_shard in found for batch in of_shard for i in batch])
        assert counts.tolist() == [epochs] * ROWS
        rows = [sum(map(len, of_shard)) for of_shard in found]
        assert max(rows) - min(rows) <= epochs
        # Batches continue across the ends of epochs, so only the last one may be smaller.
        assert all(len(batch) == 7 for of_shard in found for batch in of_shard[:-1])


def test_endless_epochs_have_different_orders(converter):
    found = list(itertools.chain(*taken(converter, 3 * ROWS, batch_size=1)))
    epochs = [found[i * ROWS : (i + 1) * ROWS] for i in range(3)]
    assert all(sorted(epoch) == list(range(ROWS)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    assert found == list(itertools.chain(*taken(converter, 3 * ROWS, batch_size=1)))
    plain = taken(converter, batch_size=ROWS, num_epochs=1, shuffle_row_groups=False)
    assert plain == [[*range(0, ROWS, 3), *range(1, ROWS, 3), *range(2, ROWS, 3)]]
    with converter.make_torch_dataloader(ROWS, num_epochs=1) as loader:
        first, second = ([i for b in loader for i in b["id"].tolist()] for _ in range(2))
    assert sorted(first) == sorted(second) and first != second


def test_batches_have_the_columns_of_the_frame(converter):
    copy = pickle.loads(pickle.dumps(converter))
    with copy.make_torch_dataloader(batch_size=4, num_epochs=1) as loader:
        batch = next(iter(loader))
    ids = batch["id"].tolist()
    assert batch["x"].tolist() == [[i, i + 0.5] for i in ids]
    assert batch["text"] == [f"row {i}" for i in ids]


def test_a_transform_changes_and_drops_rows(converter):
    def even(frame):
        frame = frame[frame["id"] % 2 == 0].copy()
        frame["square"] = [np.full((2, 1), i * i) for i in frame["id"]]
        return frame

    spec = TransformSpec(
        even, edit_fields=[("square", np.float32, (1, 2), False)], removed_fields=["text"]
    )
    options = {"batch_size": 5, "num_epochs": 1, "transform_spec": spec, "workers_count": 2}
    with converter.make_torch_dataloader(**options) as loader:
        batches = list(loader)
    assert [len(batch["id"]) for batch in batches] == [5] * 10 + [2]
    assert sorted(i for b in batches for i in b["id"].tolist()) == list(range(0, ROWS, 2))
    for batch in batches:
        assert set(batch) == {"id", "x", "square"}
        squares = [[[i * i, i * i]] for i in batch["id"].tolist()]
        assert batch["square"].tolist() == squares
    spec = TransformSpec(selected_fields=["x"])
    with converter.make_torch_dataloader(2, 1, transform_spec=spec) as loader:
        assert list(next(iter(loader))) == ["x"]


@pytest.mark.parametrize("field", ["x", ("x", np.float32), 5])
def test_edit_fields_that_are_no_tuples_are_invalid(converter, field):
    spec = TransformSpec(lambda frame: frame, edit_fields=[field])
    with (
        converter.make_torch_dataloader(2, 1, transform_spec=spec) as loader,
        pytest.raises(ValueError, match=r"edit_fields has .*use \(name, NumPy type"),
    ):
        list(loader)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"cur_shard": 0}, "set both"),
        ({"cur_shard": 2, "shard_count": 2}, "cur_shard is 2 and shard_count 2"),
        ({"cur_shard": 0, "shard_count": 200, "num_epochs": None}, "has no row"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"num_epochs": 0}, "num_epochs is 0"),
        ({"predicate": 1}, "predicate is not supported"),
        ({"transform_spec": TransformSpec(selected_fields=["y"])}, "names the unknown column 'y'"),
    ],
)
def test_invalid_arguments_are_named(converter, options, expected):
    with pytest.raises((ValueError, TypeError), match=expected):
        taken(converter, **{"num_epochs": 1, **options})


def test_deleting_removes_the_files(converter, tmp_path):
    converter.delete()
    assert not tmp_path.exists()


TENSORFLOW = """
import pickle, sys
import numpy as np
import tensorflow as tf
converter = pickle.loads(open(sys.argv[1], "rb").read())
with converter.make_tf_dataset(batch_size=10, num_epochs=2) as dataset:
    for _ in range(2):
        ids = []
        for batch in dataset:
            assert batch._fields == ("id", "x", "text")
            assert np.array_equal(batch.x[:, 0], tf.cast(batch.id, tf.float64))
            ids += batch.id.numpy().tolist()
        assert np.bincount(ids).tolist() == [2] * len(converter)
with converter.make_tf_dataset(cur_shard=1, shard_count=2) as dataset:
    assert sum(len(batch.id) for batch in dataset.take(9)) == 9 * 32
with converter.make_tf_dataset(num_epochs=1, cur_shard=0, shard_count=200) as dataset:
    pass
"""


@pytest.mark.tensorflow
@pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"
)
def test_a_tf_dataset_gives_named_tuples(converter, tmp_path):
    pickled = tmp_path / "_converter"
    pickled.write_bytes(pickle.dumps(converter))
    ended = subprocess.run(
        [sys.executable, "-c", TENSORFLOW, str(pickled)], capture_output=True, text=True
    )
    assert "the shard has no row" in ended.stderr.splitlines()[-1], ended.stderr
