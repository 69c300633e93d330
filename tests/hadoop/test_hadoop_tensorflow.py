"""TensorFlow with a real HDFS, through Hearth's file system plugin."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hearth import native

# A single process runs all checks: TensorFlow loads slowly, and a file system stays registered.
_PROGRAM = """
import sys
import hearth.tensorflow.filesystems as filesystems
filesystems.register_when_imported()
import importlib.util
importlib.util.find_spec("tensorflow")  # a look must not use the registration up
import tensorflow as tf

root = sys.argv[1]
files = tf.io.gfile
filesystems.register_filesystems()  # once more is no error

files.makedirs(root + "/a/b")
with files.GFile(root + "/a/x", "w") as file:
    file.write("one ")
    file.flush()
    assert files.stat(root + "/a/x").length == 4
    file.write("two")
with files.GFile(root + "/a/x", "a") as file:
    file.write(" three")
with files.GFile(root + "/a/x") as file:
    assert file.read() == "one two three"
assert files.exists(root + "/a/x") and not files.exists(root + "/a/y")
assert files.isdir(root + "/a") and not files.isdir(root + "/a/x")
files.copy(root + "/a/x", root + "/a/b/y")
files.rename(root + "/a/b/y", root + "/a/b/z", overwrite=True)
assert sorted(files.listdir(root + "/a")) == ["b", "x"]
assert files.glob(root + "/a/*/?") == [root + "/a/b/z"]
assert [len(found) for _, _, found in files.walk(root + "/a")] == [1, 1]
files.remove(root + "/a/x")
files.rmtree(root + "/a")
assert not files.exists(root + "/a")
try:
    files.GFile(root + "/nothing").read()
except tf.errors.NotFoundError as error:
    assert root + "/nothing" in str(error), error
else:
    raise AssertionError("a file that is not there was read")

parts = [root + f"/r/part-{i}" for i in range(2)]
for part in parts:
    with tf.io.TFRecordWriter(part) as writer:
        for i in range(2000):
            writer.write(bytes([i % 256]) * 3136)
found = tf.data.TFRecordDataset(tf.io.gfile.glob(root + "/r/part-*"))
assert sum(1 for record in found if len(record.numpy()) == 3136) == 4000

class Doubler(tf.Module):
    def __init__(self):
        self.by = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def double(self, values):
        return values * self.by

model = Doubler()
manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), root + "/c", max_to_keep=2)
for _ in range(3):
    model.by.assign_add(1.0)
    manager.save()
assert len(manager.checkpoints) == 2
model.by.assign(0.0)
tf.train.Checkpoint(model=model).restore(tf.train.latest_checkpoint(root + "/c"))
assert model.by.numpy() == 5.0
tf.saved_model.save(model, root + "/m")
loaded = tf.saved_model.load(root + "/m")
assert loaded.double(tf.constant([3.0])).numpy() == [15.0]

writer = tf.summary.create_file_writer(root + "/s")
with writer.as_default():
    tf.summary.write("loss", 1.0, step=1)
    writer.flush()
    events = files.glob(root + "/s/*")
    assert len(events) == 1 and files.stat(events[0]).length > 40
    tf.summary.write("loss", 2.0, step=2)
writer.close()
values = [e.step for e in tf.compat.v1.train.summary_iterator(events[0]) if e.step]
assert values == [1, 2], values
print("all of it")
"""


def test_gfile_records_checkpoints_models_and_summaries(hadoop):
    if not (native.DIRECTORY / "libhearth_tensorflow_files.so").is_file():
        pytest.skip("hearth was built without TensorFlow")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, f"{hadoop.uri}/user/{hadoop.user}/tensorflow"],
        env={**os.environ, "HEARTH_HDFS": "webhdfs", "TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.strip().endswith("all of it"), done.stdout + done.stderr
