"""Problems with the executors' Python are reported in one line, for each of Spark's messages."""

import pytest

from hearth.cluster.errors import ClusterError, NodeError, job_error, own_error
from hearth.native.failure import Failure, TaskError
from hearth.spark.failures import wrong_python

BEFORE = "Job aborted due to stage failure: Could not recover from a failed barrier ResultStage.\n"
WORKER = '  File "pyspark/serializers.py", line 563, in loads\n    return cloudpickle.loads(obj)\n'
JAVA = "\tat org.apache.spark.api.python.PythonWorkerFactory.startDaemon(PythonWorkerFactory.scala)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"{WORKER}ModuleNotFoundError: No module named 'hearth'",
            "has no hearth, but the driver's",
        ),
        (
            f"{WORKER}ModuleNotFoundError: No module named 'hearth.caffe_jobs'",
            "PYSPARK_PYTHON before",
        ),
        ("ModuleNotFoundError: No module named 'pyarrow'\n", "has no pyarrow: install it"),
        (
            'java.io.IOException: Cannot run program "./env/bin/python": error=2, No such file or '
            f"directory\n\tat java.base/java.lang.ProcessBuilder.start\n{JAVA}",
            "cannot start their Python ./env/bin/python: set spark.pyspark.python",
        ),
        (
            "pyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has "
            "different version: 3.12 than that in driver: 3.11, PySpark cannot run with different",
            "Python is 3.12, the driver's 3.11: the minor versions must be",
        ),
    ],
)
def test_an_error_of_the_executors_python_is_one_line(text, said):
    line = wrong_python(BEFORE + text)
    assert said in line and "\n" not in line
    assert said in str(own_error(RuntimeError(BEFORE + text)))


@pytest.mark.parametrize(
    "text",
    [
        "ModuleNotFoundError: No module named 'hearthstone'",
        'java.io.IOException: Cannot run program "nvidia-smi": error=2\n\tat org.apache',
        BEFORE,
    ],
)
def test_other_failures_are_not_attributed_to_python(text):
    assert wrong_python(text) is None


FROM_A_WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "feed_task.py", line 256, in feed
    raise
KeyError: 'first'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "feed_task.py", line 291, in _write
    if not connection.ring.write(batch, timeout_s):
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: column 't' has Arrow type timestamp
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (FROM_A_WORKER, "ValueError: column 't' has Arrow type timestamp"),
        (FROM_A_WORKER + "\n\tat org.apache.spark.Task.run(Task.scala:1)\n", "ValueError: column"),
        (
            "[USER_RAISED_EXCEPTION] my error SQLSTATE: P0001\n\nJVM stacktrace:\n",
            "[USER_RAISED_EX",
        ),
        (
            "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collect.\n"
            ": org.apache.hadoop.mapred.InvalidInputException: Input path does not exist: x\n\tat",
            "org.apache.hadoop.mapred.InvalidInputException: Input path does not exist: x",
        ),
    ],
)
def test_any_other_failure_of_a_feed_job_is_a_cluster_error_in_one_line(text, line):
    error = job_error(RuntimeError(text))
    assert type(error) is ClusterError and "\n" not in str(error)
    assert f"could not compute or send the rows: {line}" in str(error)


def test_the_clusters_errors_are_unchanged():
    failure = Failure("worker:1 failed", node="worker:1", kind="NodeError")
    error = job_error(RuntimeError(FROM_A_WORKER + str(TaskError(failure))))
    assert (type(error), str(error)) == (NodeError, "worker:1 failed")
