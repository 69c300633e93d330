"""Messages to the thread that watches an attempt of a training."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any


class Kind(Enum):
    """The kind of a message; each comment describes its value."""

    EVENT = auto()  # a rank's event
    FAILURE = auto()  # the first failure reported by the rendezvous
    DRAINED = auto()  # None: no more events follow
    FINISHED = auto()  # rank 0's done event, sent once all ranks are done
    ERROR = auto()  # the exception of Spark's job
    RESULT = auto()  # the result of Spark's job


@dataclass(frozen=True)
class Message:
    """A report from the coordinator or from Spark's job."""

    kind: Kind
    value: Any = None
