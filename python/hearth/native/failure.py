"""What failed and where, as data: how it reaches the driver, and the attributes of its errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from hearth.errors import HearthError, error_class

# Stands before the JSON of a failure in the text of a task's exception.
_MARK = "hearth-failure: "


@dataclass(frozen=True)
class Failure:
    """The first thing that failed in a job. What is not known keeps its default."""

    text: str
    code: str = "internal"  # hearth::ErrorCode's name
    rank: int = -1  # of a training; a cluster's node id; -1: no single one
    node: str = ""  # "worker:0"
    host: str = ""
    layer: str = ""
    iteration: int = -1
    lost: bool = False  # it went away or fell silent instead of reporting an error
    kind: str = ""  # the class of a cluster's error

    @classmethod
    def of(cls, values: Mapping[str, Any], **others: Any) -> Failure:
        """From the fields of an event; what a failure does not have is left out."""
        names = {field.name for field in fields(cls)}
        known = {name: value for name, value in values.items() if name in names}
        return cls(**{**known, **others})

    @classmethod
    def of_rank(
        cls, rank: int, host: str, reason: object, known: Mapping[str, Any] | None = None
    ) -> Failure:
        """Of a rank that fails by itself, in the rendezvous' words; `known` as in of()."""
        text = f"rank {rank} on host {host} failed: {reason}"
        return cls.of(known or {}, text=text, rank=rank, host=host)

    @classmethod
    def of_rendezvous(cls, failure: Mapping[str, Any]) -> Failure:
        """From what Coordinator.failure() gives."""
        return cls.of({**failure["details"], **failure}, text=_one_line(failure["message"]))

    @property
    def closed(self) -> bool:
        """Whether it is known by the end of a connection alone, rather than by silence."""
        return self.lost and self.code == "unavailable"

    @property
    def silent(self) -> bool:
        """Whether it is known by silence alone: of a host that is off the network, perhaps."""
        return self.lost and not self.closed

    @property
    def is_loss(self) -> bool:
        """Whether a process is gone, by its connection or in the words of its peers: what another
        attempt may do better."""
        return self.lost or self.code in ("unavailable", "deadline_exceeded")

    def line(self) -> str:
        """As find() reads it in a longer text: one line."""
        return _MARK + json.dumps(asdict(self))

    @classmethod
    def find(cls, text: str) -> Failure | None:
        """The first failure that a task has written into the text of its exception, if any."""
        start = text.find(_MARK)
        if start < 0:
            return None
        try:
            values, _ = json.JSONDecoder().raw_decode(text, start + len(_MARK))
            return cls.of(values)
        except (ValueError, TypeError, AttributeError):  # cut off, or of another's making
            return None

    def error(self) -> HearthError:
        """A HearthError of the class of its code, to raise in the driver; its attributes say what
        is known of the failure."""
        error = error_class(self.code)(self.text)
        self.note_in(error)
        return error

    def note_in(self, error: Any) -> None:
        """Gives an error, or a class of errors, its attributes."""
        for field in fields(self):
            if field.name not in ("text", "kind"):
                setattr(error, field.name, getattr(self, field.name))


def _one_line(text: str) -> str:
    return " ".join(text.split())


class TaskError(HearthError):
    """Leaves a Spark task, whose exception reaches the driver as text: that of the failure, and
    in a second line its fields."""

    def __init__(self, failure: Failure):
        super().__init__(f"{failure.text}\n{failure.line()}")
        self.failure = failure
