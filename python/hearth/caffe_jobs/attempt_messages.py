"""Messages to the thread that watches an attempt of a training."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any


class Kind(Enum):
    """What a message reports, and its value."""

    EVENT = auto()  # a rank's event
    FAILURE = auto()  # the first failure that the rendezvous reports
    DRAINED = auto()  # no more events will come
    FINISHED = auto()  # rank 0's done event: all ranks are done
    ERROR = auto()  # the exception of Spark's job
    RESULT = auto()  # what Spark's job returned


@dataclass(frozen=True)
class Message:
    """One report, of the coordinator or of Spark's job."""

    kind: Kind
    value: Any = None
