"""What is wrong with the executors' Python is one line, whoever says it and how long."""

import pytest

from hearth.cluster.errors import own_error
from hearth.spark.failures import wrong_python

BEFORE = "Job aborted due to stage failure: Could not recover from a failed barrier ResultStage.\n"
WORKER = '  File "pyspark/serializers.py", line 563, in loads\n    return cloudpickle.loads(obj)\n'
JAVA = "\tat org.apache.spark.api.python.PythonWorkerFactory.startDaemon(PythonWorkerFactory.scala)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{WORKER}ModuleNotFoundError: No module named 'hearth'", "has no hearth: bring it by"),
        (f"{WORKER}ModuleNotFoundError: No module named 'hearth.trainer'", "has no hearth: bring"),
        ("ModuleNotFoundError: No module named 'pyarrow'\n", "has no pyarrow: install it"),
        (
            'java.io.IOException: Cannot run program "./env/bin/python": error=2, No such file or '
            f"directory\n\tat java.base/java.lang.ProcessBuilder.start\n{JAVA}",
            "cannot start their Python ./env/bin/python: set spark.pyspark.python",
        ),
        (
            "pyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has "
            "different version: 3.12 than that in driver: 3.11, PySpark cannot run with different",
            "Python is 3.12, the driver's 3.11: they must be",
        ),
    ],
)
def test_it_is_one_line(text, said):
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
def test_other_failures_are_not_taken_for_it(text):
    assert wrong_python(text) is None
