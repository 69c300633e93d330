"""Rows of one partition as a program reads them: from a feed task, or once more from disk."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hearth.cluster.channel import Message
from hearth.cluster.spool import Spool
from hearth.rows.pickles import RowFormat

if TYPE_CHECKING:
    from hearth.cluster.feed_server import Session

# Feeders hear at least this often that rows are taken.
_PROGRESS_S = 1.0
_FOREVER_S = 1e9

_claims = itertools.count(1)


@dataclass
class Given:
    """How far a partition's rows were given to programs, in whole batches."""

    batches: int = 0
    hash: int = 0  # of those batches

    def after(self, batch: Any) -> Given:
        """With one more batch, a FeedBatch."""
        return Given(self.batches + 1, batch.hash_after(self.hash))


class Partition:
    """Rows that one feed task sends. One thread reads; the session's thread learns the total."""

    def __init__(self, session: Session, message: Message, report: Callable[[Message], None]):
        """`report` sends an event to the driver."""
        self.feed = message["feed"]
        self.index = message["index"]
        self.taken = 0  # rows that programs were given
        self.format = RowFormat(
            pickled=message["format"] == "pickle",
            batched=message["batched"],
            from_afar=session.from_afar,
        )
        self.keep = message["keep"]
        self.inference = message["mode"] == "inference"
        # Whether the driver must say first that this attempt, and no other, may bring the rows.
        self.fenced = message["fenced"]
        self.claim = next(_claims)
        self._session = session
        self._report = report
        self._lock = threading.Lock()
        self._entries = 0  # rows of batches, taken from the ring
        self._total: int | None = None
        self._open = 0  # batches that are not used up, and rows whose results are owed
        self._ended = False
        self._dropped = False
        self._told = time.monotonic()
        self._granted = False
        self._before = Given()  # what an earlier attempt brought
        self._only_compare = False
        self._read = Given()
        self._given = Given()

    def ask(self) -> None:
        """Asks the driver for the right to bring the rows."""
        self._tell_driver("claim")

    def begin(self, answer: Message) -> None:
        """The rows may come; those that were given of an earlier attempt are passed over."""
        self._before = self._given = Given(answer["batches"], answer["hash"])
        self._only_compare = answer["whole"]
        self.taken = answer["rows"]
        self._granted = True
        self._session.tell({"op": "begin"})

    def wait(self) -> None:
        """Another attempt brings the rows, and makes progress."""
        self._session.tell({"op": "progress"})

    def read(self) -> Any:
        """The next batch, which counts as held; None at the partition's end.

        A pyarrow.RecordBatch; pickles are in a FeedBatch that lies in the ring until release().

        Raises:
            ConnectionError: the feed task died, or the partition was dropped meanwhile.
        """
        while (batch := self._next()) is not None:
            with self._lock:
                self._entries += batch.num_rows
                self._open += 1
            if not self.fenced:
                return self._in_shape(batch)
            self._read = self._read.after(batch)
            if self._read.batches > self._before.batches:
                if self._only_compare:
                    self._refuse_other_rows()
                return self._in_shape(batch)
            if self._read.batches == self._before.batches and self._read != self._before:
                self._refuse_other_rows()
            self.settle(1)
        if self._read.batches < self._before.batches:
            self._refuse_other_rows()
        return None

    def _in_shape(self, batch: Any) -> Any:
        import pyarrow as pa

        return batch if self.format.pickled else pa.record_batch(batch)

    def release(self) -> None:
        """The last batch of pickles has been read: the feed task may write into its place."""
        if self.format.pickled:
            self._session.release()

    def _next(self) -> Any:
        try:
            kind, batch = self._session.read(in_place=self.format.pickled)
        except RuntimeError as error:
            if not self._dropped:
                raise
            raise ConnectionError("the partition was dropped") from error
        if kind == "batch":
            return batch
        # Also where the task dies before it can say so.
        self.set_total(self._entries)
        return None

    def _refuse_other_rows(self) -> None:
        """Raises ConnectionError, having told task and driver."""
        text = (
            f"partition {self.index} has other rows, or the same in another order, than when it "
            f"was computed before, so its rows behind the {self.taken} that were given cannot be "
            "told: give rows that Spark computes alike each time, such as files, a checkpoint() of "
            "the RDD or DataFrame, or sorted partitions"
        )
        event = {"event": "feed_error", "feed": self.feed, "text": text, "timeout": False}
        self._report(event)
        self.refuse(text)
        raise ConnectionError(text)

    def note_given(self) -> None:
        """No row of the batches that were read waits for another batch."""
        if self._read.batches > self._given.batches:
            self._given = self._read

    def hold(self, count: int) -> None:
        """The results of `count` more rows are owed."""
        with self._lock:
            self._open += count

    def settle(self, count: int) -> None:
        """`count` held batches are used up, or owed results are written."""
        with self._lock:
            self._open -= count
        now = time.monotonic()
        if now - self._told > _PROGRESS_S:
            self._told = now
            self._session.tell({"op": "progress"})
        self._end_if_complete()

    def set_total(self, entries: int) -> None:
        """The feed task has written its last row."""
        with self._lock:
            self._total = entries
        self._end_if_complete()

    def write_results(self, rows: Any) -> None:
        """Sends a pyarrow.RecordBatch back. Raises ConnectionError when the feed task is gone."""
        self._session.results.write(rows, _FOREVER_S)

    def _end_if_complete(self) -> None:
        with self._lock:
            if self._ended or self._open or self._entries != self._total:
                return
            if self._read.batches < self._before.batches:
                return  # fewer rows than before: read() refuses them
            self._ended = True
        if self.inference:
            self._session.results.flush(_FOREVER_S)
        self._give_back("taken")
        self._session.tell({"op": "taken"})

    def lose(self) -> None:
        """The feed task is gone: another attempt may bring what was not given."""
        with self._lock:
            self._ended = True
        self._give_back("broken")

    def conclude(self, end: str) -> None:
        """Another attempt has brought the rows; `end` says what became of them."""
        with self._lock:
            self._ended = True
        self._session.tell({"op": end})

    def refuse(self, reason: str) -> None:
        """The cluster failed: the feed task is told so."""
        self._drop({"error": reason}, "broken")

    def drop(self) -> None:
        """The rest of the rows is not wanted."""
        self._drop({"op": "terminated"}, "terminated")

    def _drop(self, message: Message, state: str) -> None:
        with self._lock:
            if self._ended:
                return
            self._ended = self._dropped = True
        self._give_back(state)
        self._session.tell(message)
        self._session.close_rings()

    def _give_back(self, state: str) -> None:
        """Tells the driver, once, how the right to bring the rows was used."""
        with self._lock:
            granted, self._granted = self._granted, False
        if granted:
            given = self._read if state == "taken" else self._given
            self._tell_driver("claim_end", state=state, rows=self.taken, **asdict(given))

    def _tell_driver(self, event: str, **more: Any) -> None:
        where = {"feed": self.feed, "partition": self.index, "claim": self.claim}
        self._report({"event": event, **where, **more})


class Replay:
    """The kept rows of a feed once more, `times` over; read like a Partition."""

    keep = False
    inference = False
    fenced = False
    index = -1
    claim = 0

    def __init__(self, spool: Spool, message: Message, report: Callable[..., None]):
        """`report` sends an event of a name to the driver, with more fields."""
        times = message["times"]
        self.feed = message["feed"]
        self.taken = 0
        self._batches = (batch for _ in range(times) for batch in spool)
        self._left = times * len(spool)
        self._report = report
        self._told = time.monotonic()
        if not self._left:
            report("replayed")

    def read(self) -> Any:
        entry = next(self._batches, None)
        if entry is None:
            return None
        batch, self.format = entry
        return batch

    def release(self) -> None:
        """Nothing lies in a ring."""

    def note_given(self) -> None:
        """Nobody else could bring the rest."""

    def settle(self, count: int) -> None:
        self._left -= count
        now = time.monotonic()
        if self._left == 0:
            self._report("replayed")
        elif now - self._told > _PROGRESS_S:
            self._told = now
            self._report("progress")

    def refuse(self, reason: str) -> None:
        """The cluster failed, or its feed was ended before: the driver waits for these rows."""
        if self._left:
            self._report("feed_error", text=reason, timeout=False)

    def drop(self) -> None:
        if self._left:
            self._report("replayed")

    def lose(self) -> None:
        """It has no feed task."""
