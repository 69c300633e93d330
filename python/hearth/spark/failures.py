"""What Spark's own texts say of a failed job. No other words are read anywhere."""

from __future__ import annotations

import re

from hearth.spark.own_python import interpreters

# A process or host that is gone, or slots that went with it.
_LOSS = re.compile(
    r"ExecutorLost|executor \d+ exited|Executor heartbeat timed out|exited unexpectedly"
    r"|Connection reset|EOFException"
    r"|FetchFailedException|Missing an output location for shuffle"
    r"|SPARK-24819|BARRIER_STAGE_REQUIRES_MORE_SLOTS|requires more slots",
    re.IGNORECASE,
)

# YARN's own sentence, up to where Spark advises.
_MEMORY = re.compile(r"killed by YARN for exceeding .*?memory limits?\.(?: [^.]*(?:\.\d[^.]*)*\.)?")


# What is wrong with the Python of executors, and what is to be said of it.
_PYTHONS = (
    (
        r"No module named '?(hearth)\b",
        "the executors' Python{executors} has no {0}, the driver's {driver} has: set "
        "PYSPARK_PYTHON before the session starts (spark.pyspark.python for spark-submit) to one "
        "that has it on all hosts, or bring it by an archive (`hearth pack` says how)",
    ),
    (
        r"No module named '(numpy|pyarrow|pandas)\b",
        "the executors' Python{executors} has no {0}: install it on the hosts, set PYSPARK_PYTHON "
        "(spark.pyspark.python for spark-submit) to one that has it, or bring a whole environment "
        "(`hearth pack --environment`); the driver's is {driver}",
    ),
    (
        r'Cannot run program "([^"]+)"[^\n]*(?=.*api\.python)',
        "executors cannot start their Python {0}: set spark.pyspark.python to one that all hosts "
        "have, or bring one (`hearth pack --environment`)",
    ),
    (
        r"Python in worker has different version:? (\S+) than that in driver:? (\d+\.\d+)",
        "the executors' Python is {0}, the driver's {1}: they must be of one minor version; set "
        "spark.pyspark.python, or pack and submit with the hosts' version",
    ),
)


def wrong_python(text: str) -> str | None:
    """One line about the executors' Python, where the text of a failed job tells of that."""
    for words, meaning in _PYTHONS:
        if found := re.search(words, text, re.DOTALL):
            executors, driver = interpreters()
            return meaning.format(*found.groups(), executors=executors, driver=driver)
    return None


# The end of a Python traceback; of chained ones each has one.
_RAISED = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)", re.MULTILINE
)


def cause_line(text: str) -> str:
    """The line of a Spark exception that says what a task raised, else its first line."""
    if raised := _RAISED.findall(text):
        return raised[-1]
    lines = [line.strip().removeprefix(": ") for line in text.splitlines()]
    # py4j's own line says which method of Spark's was called, not what went wrong.
    told = [line for line in lines if line and not line.startswith("An error occurred while call")]
    return told[0] if told else text


def memory_kill(text: str) -> str | None:
    """What the resource manager said, where it ended a container for the memory it took."""
    found = _MEMORY.search(text)
    return found[0].strip() if found else None


def tells_of_loss(text: str) -> bool:
    """Whether the text of a failed job tells of a process or host that went away."""
    return _LOSS.search(text) is not None


def loss_line(text: str) -> str:
    """The line of a Spark exception that says which process was lost."""
    lines = [line.strip() for line in text.splitlines() if tells_of_loss(line)]
    return "Spark lost a task: " + (lines[0] if lines else text.strip().partition("\n")[0])
