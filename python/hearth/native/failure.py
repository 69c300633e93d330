"""A failure as data: its transport to the driver, and the attributes of errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from hearth.errors import HearthError, error_class

# Prefix of a failure's JSON in a task's exception.
_MARK = "hearth-failure: "


@dataclass(frozen=True)
class Failure:
    """The first failure of a job. Unknown fields keep their defaults."""

    text: str
    code: str = "internal"  # hearth::ErrorCode's name
    rank: int = -1  # a training's rank, or a cluster's node id; -1: none
    node: str = ""  # "worker:0"
    host: str = ""
    layer: str = ""
    iteration: int = -1
    lost: bool = False  # it ended or stopped responding without reporting an error
    kind: str = ""  # the class of a cluster's error

    @classmethod
    def of(cls, values: Mapping[str, Any], **others: Any) -> Failure:
        """From the fields of an event; other fields are ignored."""
        names = {field.name for field in fields(cls)}
        known = {name: value for name, value in values.items() if name in names}
        return cls(**{**known, **others})

    @classmethod
    def of_rank(
        cls, rank: int, host: str, reason: object, known: Mapping[str, Any] | None = None
    ) -> Failure:
        """A failure of a rank itself, in the format of the rendezvous; `known` as in of()."""
        text = f"rank {rank} on host {host} failed: {reason}"
        return cls.of(known or {}, text=text, rank=rank, host=host)

    @classmethod
    def of_rendezvous(cls, failure: Mapping[str, Any]) -> Failure:
        """From the result of Coordinator.failure()."""
        return cls.of(failure, text=" ".join(failure["message"].split()))

    @property
    def closed(self) -> bool:
        """Whether it was only detected by the end of a connection."""
        return self.lost and self.code == "unavailable"

    @property
    def silent(self) -> bool:
        """Whether it was only detected by a missing response, e.g. of a disconnected host."""
        return self.lost and not self.closed

    @property
    def is_loss(self) -> bool:
        """Whether a process was lost, according to its connection or to its peers, so a retry may
        succeed."""
        return self.lost or self.code in ("unavailable", "deadline_exceeded")

    def explained_by(self, reported: Failure | None) -> Failure:
        """Returns whichever of this failure (the rendezvous' first) and `reported` (from Spark's
        job) caused the other.

        A rank's own error is final. A loss is explained by what the task of the lost rank reports,
        and by an error because of which that rank ended.
        """
        if reported is None or not self.is_loss:
            return self
        explains = self.rank in (-1, reported.rank) or not reported.is_loss
        return reported if explains else self

    def line(self) -> str:
        """One line that find() recognizes in a longer text."""
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
        except (ValueError, TypeError, AttributeError):  # truncated, or not written by a task
            return None

    def error(self) -> HearthError:
        """A HearthError of the class of its code, for the driver, with the failure's fields as
        attributes."""
        error = error_class(self.code)(self.text)
        self.note_in(error)
        return error

    def note_in(self, error: Any) -> None:
        """Sets the attributes of an error, or of a class of errors."""
        for field in fields(self):
            if field.name not in ("text", "kind"):
                setattr(error, field.name, getattr(self, field.name))


class TaskError(HearthError):
    """An exception of a Spark task, which reaches the driver as text: the failure's text, and its
    fields in a second line."""

    def __init__(self, failure: Failure):
        super().__init__(f"{failure.text}\n{failure.line()}")
        self.failure = failure
