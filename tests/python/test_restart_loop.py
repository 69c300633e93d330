"""The loop over the generations of a job, without Spark."""

import pytest

from hearth.native.failure import Failure
from hearth.spark import slots
from hearth.spark.restarts import Lost, NotReplaced, Restarts


class Session:
    conf = {}


@pytest.fixture
def waits(monkeypatch):
    """Records for how many tasks each call waits for slots."""
    found = []
    monkeypatch.setattr(slots.SlotWait, "wait", lambda self: found.append(self._tasks))
    return found


def lose(generation):
    raise Lost(Failure(f"rank {generation} went away", rank=generation, lost=True))


def test_each_loss_starts_a_generation_once_slots_are_available(waits):
    restarts, reported = Restarts(Session(), tasks=3, most=5), []

    def attempt(generation):
        return "result" if generation == 2 else lose(generation)

    def on_restart(lost):
        reported.append((str(lost), restarts.count, len(waits)))

    assert restarts.run(attempt, on_restart) == "result"
    assert reported == [("rank 0 went away", 1, 0), ("rank 1 went away", 2, 1)]
    assert waits == [3, 3]


def test_an_ended_generation_counts_as_the_first_loss(waits):
    restarts, cause = Restarts(Session(), tasks=1, most=1), KeyError("what Spark said")
    first = Lost(Failure("a node went away"))
    first.__cause__ = cause
    assert restarts.run(lambda generation: generation, lambda lost: None, first) == 1
    with pytest.raises(Lost, match=r"a node went away \(failed after 1 restarts\)") as found:
        restarts.run(lambda generation: generation, lambda lost: None, first)
    assert found.value.__cause__ is cause
    assert waits == [1]


def test_without_restarts_the_first_loss_is_final(waits):
    with pytest.raises(Lost) as found:
        Restarts(Session(), tasks=1, most=0).run(lose, pytest.fail)
    assert found.value.failure == Failure("rank 0 went away", rank=0, lost=True)
    assert waits == []


def test_other_errors_end_the_loop(waits):
    def attempt(generation):
        raise ValueError("my own fault")

    with pytest.raises(ValueError, match="my own fault"):
        Restarts(Session(), tasks=1, most=3).run(attempt, pytest.fail)


def test_a_loss_without_a_replacement_has_the_reason(monkeypatch):
    monkeypatch.setattr(slots, "slots_now", lambda session, profile: 1)
    monkeypatch.setattr(Session, "conf", {slots.WAIT_SETTING: "0"})
    reported = []
    with pytest.raises(NotReplaced, match="2 ranks need 2 task slots") as found:
        Restarts(Session(), tasks=2, most=3).run(lose, reported.append)
    assert str(found.value.lost) == "rank 0 went away"
    assert len(reported) == 1


def test_the_notify_callback_may_end_the_wait(monkeypatch):
    def tell(line):
        raise ValueError(line)

    monkeypatch.setattr(slots, "slots_now", lambda session, profile: 1)
    with pytest.raises(ValueError, match="waiting for executors: 1 of 2 slots"):
        Restarts(Session(), 2, 3, tell).run(lose, lambda lost: None)
