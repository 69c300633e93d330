"""Classifies failed jobs by Spark's messages. No other texts are parsed to classify failures."""

from __future__ import annotations

import re

from hearth.spark.driver_python import interpreters

# Matches messages about a lost process or host, or about slots lost with it.
_LOSS = re.compile(
    r"ExecutorLost|executor \d+ exited|Executor heartbeat timed out|exited unexpectedly"
    r"|Connection reset|EOFException|java\.net\.ConnectException|IOException: Broken pipe"
    r"|Failed to get broadcast_"
    r"|FetchFailedException|Missing an output location for shuffle"
    r"|SPARK-24819|BARRIER_STAGE_REQUIRES_MORE_SLOTS|requires more slots",
    re.IGNORECASE,
)

# Matches YARN's message, without Spark's advice that follows it.
_MEMORY = re.compile(r"killed by YARN for exceeding .*?memory limits?\.(?: [^.]*(?:\.\d[^.]*)*\.)?")


# Problems with the executors' Python, and their messages.
_PYTHONS = (
    (
        r"No module named '?(hearth)\b",
        "the executors' Python{executors} has no {0}, but the driver's {driver} has: set "
        "PYSPARK_PYTHON before the session starts (spark.pyspark.python for spark-submit) to one "
        "with it on all hosts, or ship it in an archive (see `hearth pack`)",
    ),
    (
        r"No module named '(numpy|pyarrow|pandas)\b",
        "the executors' Python{executors} has no {0}: install it on the hosts, set PYSPARK_PYTHON "
        "(spark.pyspark.python for spark-submit) to one that has it, or ship an environment "
        "(`hearth pack --environment`); the driver's is {driver}",
    ),
    (
        r'Cannot run program "([^"]+)"[^\n]*(?=.*api\.python)',
        "executors cannot start their Python {0}: set spark.pyspark.python to one that exists on "
        "all hosts, or ship one (`hearth pack --environment`)",
    ),
    (
        r"Python in worker has different version:? (\S+) than that in driver:? (\d+\.\d+)",
        "the executors' Python is {0}, the driver's {1}: the minor versions must be equal; set "
        "spark.pyspark.python, or pack and submit with the hosts' version",
    ),
)


def wrong_python(text: str) -> str | None:
    """One line about the executors' Python if a failed job's message reports a problem with it."""
    for words, meaning in _PYTHONS:
        if found := re.search(words, text, re.DOTALL):
            executors, driver = interpreters()
            return meaning.format(*found.groups(), executors=executors, driver=driver)
    return None


# Matches a Python traceback and captures its last line; chained exceptions have several tracebacks.
_RAISED = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)", re.MULTILINE
)


def cause_line(text: str) -> str:
    """The line of a Spark exception that has a task's error, or otherwise its first line."""
    if raised := _RAISED.findall(text):
        return raised[-1]
    lines = [line.strip().removeprefix(": ") for line in text.splitlines()]
    # Skips py4j's line, which names the called method, not the error.
    relevant = [
        line for line in lines if line and not line.startswith("An error occurred while call")
    ]
    return relevant[0] if relevant else text


def start_line(text: str) -> str:
    """One line about a session that could not be started."""
    if "stopped SparkContext" in text:  # only Spark's log has the reason
        return "its master did not accept the application: check that it runs, and its address"
    if "Java gateway process exited" in text:
        return "its JVM ended while it started, with the message above: check --master and --conf"
    return cause_line(text)


def memory_kill(text: str) -> str | None:
    """The resource manager's message, if it killed a container for exceeding its memory limit."""
    found = _MEMORY.search(text)
    return found[0].strip() if found else None


def reports_loss(text: str) -> bool:
    """Whether a failed job's message reports a lost process or host."""
    return _LOSS.search(text) is not None


def loss_line(text: str) -> str:
    """The line of a Spark exception that names the lost process."""
    lines = [line.strip() for line in text.splitlines() if reports_loss(line)]
    return "Spark lost a task: " + (lines[0] if lines else text.strip().partition("\n")[0])
