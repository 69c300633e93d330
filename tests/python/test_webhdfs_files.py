"""The core's files in HDFS through Python. The server is a thread of this process, so a call that
blocked while holding the GIL would never return.
"""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest
from webhdfs_server import WebHdfs, refusal

from hearth import native
from hearth.native import _core


@pytest.fixture
def hdfs():
    with WebHdfs() as server:
        yield server


def test_reads_writes_and_appends(hdfs):
    uri = f"{hdfs.uri}/a b%/ä"
    _core.write_file(uri, b"one ")
    _core.append_file(uri, b"two")
    assert _core.read_file(uri) == b"one two"
    assert list(hdfs.files) == ["/a b%/ä"]


def test_an_output_file_that_is_dropped_lets_other_threads_go_on(hdfs):
    file = _core.OutputFile(f"{hdfs.uri}/a")
    file.append(b"never seen")
    assert len(hdfs.files) == 1
    del file  # must delete the hidden file on the server
    gc.collect()
    assert hdfs.files == {}


def test_an_input_file_that_is_dropped_lets_its_read_ahead_go_on(hdfs):
    hdfs.files["/a"] = bytes(5_000_000)
    file = _core.InputFile(f"{hdfs.uri}/a")
    assert file.read_at(0, 10) == bytes(10)
    del file
    gc.collect()


def test_a_name_that_is_not_utf8_is_in_the_error():
    program = (
        "import os\n"
        "os.environb[b'HADOOP_CONF_DIR'] = b'/nowhere/\\xff'\n"
        "from hearth.native import _core\n"
        "_core.read_file('hdfs:///a')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("hearth.errors.InvalidArgumentError: cannot open"), done.stderr
    assert "\\xff" in last


_GROWS = """
import sys
import hearth.tensorflow
hearth.tensorflow.register_filesystems()
import tensorflow as tf

file = tf.io.gfile.GFile(sys.argv[1], "w")
file.write("one ")
file.flush()
for text in ("two ", "three ", "four "):
    file.write(text)
    try:
        file.flush()
        print("flushed")
    except tf.errors.OpError as error:
        print(type(error).__name__)
file.close()
assert tf.io.gfile.GFile(sys.argv[1]).read() == "one two three four "
"""


@pytest.mark.tensorflow
def test_no_append_of_tensorflow_is_made_twice(hdfs):
    if not (native.DIRECTORY / "libhearth_tensorflow_files.so").is_file():
        pytest.skip("hearth was built without TensorFlow")
    appends = []
    refused = []

    def before(operation: str, path: str) -> object:
        if operation == "APPEND":
            appends.append(path)
            if len(appends) == 2:
                return 403, refusal("AccessControlException")
        if operation == "GETFILESTATUS" and refused:
            return refused.pop()
        return NotImplemented

    def after(operation: str, path: str) -> object:
        if operation == "APPEND" and len(appends) == 1:
            # The request is executed, but its response and the file's size do not arrive.
            refused.append((403, refusal("AccessControlException")))
            return None
        return NotImplemented

    hdfs.before, hdfs.after = before, after
    done = subprocess.run(
        [sys.executable, "-c", _GROWS, f"{hdfs.uri}/events"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert done.stdout.split() == ["PermissionDeniedError", "PermissionDeniedError", "flushed"]
    assert hdfs.files["/events"] == b"one two three four "
    assert len(appends) == 3
