"""What Spark's own texts say of a failed job. No other words are read anywhere."""

from __future__ import annotations

import re

# A process or host that is gone, or slots that went with it.
_LOSS = re.compile(
    r"ExecutorLost|executor \d+ exited|Executor heartbeat timed out|exited unexpectedly"
    r"|Connection reset|EOFException"
    r"|SPARK-24819|BARRIER_STAGE_REQUIRES_MORE_SLOTS|requires more slots",
    re.IGNORECASE,
)

# YARN's own sentence, up to where Spark advises.
_MEMORY = re.compile(r"killed by YARN for exceeding .*?memory limits?\.(?: [^.]*(?:\.\d[^.]*)*\.)?")


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
