"""Nodes read rows from files themselves: every row once, as columns."""

import numpy as np
import pytest
from table_files import ROWS, WRITERS, write_parquet, write_records

from tensorflowonspark.TFSparkNode import TFNodeContext

SPEC = {"chief": ["a:1"], "ps": ["b:1"], "worker": ["c:1", "d:1"]}


def nodes():
    return [
        TFNodeContext(1, "chief", 0, SPEC),
        TFNodeContext(2, "worker", 0, SPEC),
        TFNodeContext(3, "worker", 1, SPEC),
    ]


@pytest.mark.parametrize("write", WRITERS)
def test_the_workers_read_each_row_once_per_epoch(write, tmp_path):
    write(tmp_path)
    seen = []
    for node in nodes():
        feed = node.get_file_feed(tmp_path.as_uri(), epochs=2)
        mine, sizes = [], []
        while not feed.should_stop():
            batch = feed.next_numpy(64)
            if batch is None:
                continue
            assert np.array_equal(batch["x"][:, 0], batch["id"].astype(np.float32))
            assert batch["x"].shape == (len(batch["id"]), 2)
            mine += batch["id"].tolist()
            sizes.append(len(batch["id"]))
        assert set(sizes[:-1]) == {64}
        seen += mine
        assert len(mine) >= 2 * (200 if write is write_records else 333)
    assert sorted(seen) == sorted([*range(ROWS)] * 2)


@pytest.mark.parametrize("write", WRITERS)
def test_only_the_named_columns_are_read(write, tmp_path):
    write(tmp_path)
    feed = TFNodeContext(0, "worker", 0, {"worker": ["a:1"]}).get_file_feed(str(tmp_path), ["id"])
    assert feed.next_batch(2) == [(0,), (1,)]
    assert list(feed.next_numpy(3)) == ["id"]
    feed.terminate()
    assert (feed.should_stop(), feed.next_batch(5)) == (True, [])


def test_a_parameter_server_gets_no_rows(tmp_path):
    write_parquet(tmp_path)
    feed = TFNodeContext(0, "ps", 0, SPEC).get_file_feed(str(tmp_path))
    assert feed.next_batch(5) == []
    assert feed.should_stop()


def test_missing_files_are_named(tmp_path):
    node = nodes()[0]
    with pytest.raises(FileNotFoundError, match="there are no files in"):
        node.get_file_feed(str(tmp_path))
    with pytest.raises(ValueError, match="hdfs://rows is not in a local file system"):
        node.get_file_feed("hdfs://rows")
    write_parquet(tmp_path)
    with pytest.raises(ValueError, match="column 'z' is not in"):
        node.get_file_feed(str(tmp_path), ["z"]).next_batch(1)


def test_a_file_feed_is_a_dataset(tmp_path):
    tf = pytest.importorskip("tensorflow")
    write_parquet(tmp_path)
    data = TFNodeContext(0, "worker", 0, {"worker": ["a:1"]}).get_file_feed(str(tmp_path))
    batches = data.as_dataset(100)
    # The rows are already one node's share, so a strategy with several workers must not shard them.
    policy = batches.options().experimental_distribute.auto_shard_policy
    assert policy == tf.data.experimental.AutoShardPolicy.OFF
    total = sum(int(batch["id"].numpy().sum()) for batch in batches)
    assert total == sum(range(ROWS))
