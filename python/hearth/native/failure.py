"""A failure as data, which is sent to the driver and becomes the attributes of an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from hearth.errors import HearthError, error_class

# Precedes a failure's JSON in the text of a task's exception.
_MARK = "hearth-failure: "


@dataclass(frozen=True)
class Failure:
    """The first failure of a job. Unknown fields keep their defaults."""

    text: str
    code: str = "internal"  # name of a hearth::ErrorCode
    rank: int = -1  # rank in a training or node id in a cluster; -1: none
    node: str = ""  # such as "worker:0"
    host: str = ""
    layer: str = ""
    iteration: int = -1
    lost: bool = False  # a process ended or stopped responding without reporting an error
    kind: str = ""  # the error class of a cluster

    @classmethod
    def of(cls, values: Mapping[str, Any], **others: Any) -> Failure:
        """Creates a failure from an event's fields; ignores unknown fields."""
        names = {field.name for field in fields(cls)}
        known = {name: value for name, value in values.items() if name in names}
        return cls(**{**known, **others})

    @classmethod
    def of_rank(
        cls, rank: int, host: str, reason: object, known: Mapping[str, Any] | None = None
    ) -> Failure:
        """A rank's own failure, in the format of the rendezvous. `known`: fields as for of()."""
        text = f"rank {rank} on host {host} failed: {reason}"
        return cls.of(known or {}, text=text, rank=rank, host=host)

    @classmethod
    def of_rendezvous(cls, failure: Mapping[str, Any]) -> Failure:
        """Creates a failure from the result of Coordinator.failure()."""
        return cls.of(failure, text=" ".join(failure["message"].split()))

    @property
    def closed(self) -> bool:
        """Whether the failure was only detected because a connection was closed."""
        return self.lost and self.code == "unavailable"

    @property
    def silent(self) -> bool:
        """Whether the failure was only detected by a missing response, e.g. of a disconnected
        host."""
        return self.lost and not self.closed

    @property
    def is_loss(self) -> bool:
        """Whether a process was lost, as its connection or peers show, so a retry may succeed."""
        return self.lost or self.code in ("unavailable", "deadline_exceeded")

    def explained_by(self, reported: Failure | None) -> Failure:
        """Returns whichever of this failure (the rendezvous' first) and `reported` (from Spark's
        job) caused the other.

        A rank's own error is the cause. The cause of a loss is what the lost rank's task reported,
        or any rank's error that is not a loss.
        """
        if reported is None or not self.is_loss:
            return self
        explains = self.rank in (-1, reported.rank) or not reported.is_loss
        return reported if explains else self

    def line(self) -> str:
        """Serializes the failure to a line that find() recognizes in a longer text."""
        return _MARK + json.dumps(asdict(self))

    @classmethod
    def find(cls, text: str) -> Failure | None:
        """The first failure in the text of a task's exception, if any."""
        start = text.find(_MARK)
        if start < 0:
            return None
        try:
            values, _ = json.JSONDecoder().raw_decode(text, start + len(_MARK))
            return cls.of(values)
        except (ValueError, TypeError, AttributeError):  # truncated, or not from line()
            return None

    def error(self) -> HearthError:
        """The failure as a HearthError of its code's class, with the fields as attributes."""
        error = error_class(self.code)(self.text)
        self.note_in(error)
        return error

    def note_in(self, error: Any) -> None:
        """Sets the failure's fields as attributes of an error or of an error class."""
        for field in fields(self):
            if field.name not in ("text", "kind"):
                setattr(error, field.name, getattr(self, field.name))


class TaskError(HearthError):
    """An exception of a Spark task. The driver receives it as text: the failure's text, and its
    fields in a second line.
    """

    def __init__(self, failure: Failure):
        super().__init__(f"{failure.text}\n{failure.line()}")
        self.failure = failure
