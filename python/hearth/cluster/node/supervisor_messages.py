"""Messages to the thread that runs a node's supervisor."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any


class Kind(Enum):
    """Kinds of messages: what a message contains, or which process or task has ended."""

    PROGRAM = auto()  # the node's program reports an event, or the program's result
    DRIVER = auto()  # a message of the driver
    FAILURE = auto()  # the cluster's first failure, as the rendezvous reports it
    UNREADABLE = auto()  # files of a dataset cannot be read: (reason, code)
    TASK_ENDED = auto()
    EXECUTOR_ENDED = auto()
    DRIVER_ENDED = auto()


@dataclass(frozen=True)
class Message:
    """One message to the supervisor; the *_ENDED kinds have no value."""

    kind: Kind
    value: Any = None
