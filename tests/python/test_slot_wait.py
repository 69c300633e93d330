"""The wait for task slots, on a fake clock and without Spark."""

from fractions import Fraction

import pytest

from hearth import HearthError
from hearth.spark import slots
from hearth.spark.slots import SlotWait, executor_wait_s, local_slots


class Session:
    def __init__(self, **conf):
        self.conf = {key.replace("_", "."): value for key, value in conf.items()}


@pytest.fixture
def spark(monkeypatch):
    """Sets the number of slots from given seconds on; the last number stays."""

    def set_slots(**at):
        times = {float(key[1:]): count for key, count in at.items()}
        now = [0.0]

        def pause(seconds):
            now[0] += seconds

        monkeypatch.setattr(slots.time, "monotonic", lambda: now[0])
        monkeypatch.setattr(slots.time, "sleep", pause)
        monkeypatch.setattr(
            slots, "slots_now", lambda session, profile: times[max(t for t in times if t <= now[0])]
        )
        return now

    return set_slots


def test_late_slots_are_awaited_and_reported(spark):
    now, reported = spark(s0=1, s5=2, s130=3), []
    SlotWait(Session(), 3, reported.append).wait()
    assert now[0] == pytest.approx(130, abs=0.2)
    assert reported[:3] == [
        "waiting for executors: 1 of 3 slots (0 of 300 s)",
        "waiting for executors: 2 of 3 slots (5 of 300 s)",
        "waiting for executors: 2 of 3 slots (15 of 300 s)",
    ]
    assert len(reported) == 14


def test_missing_slots_are_an_error_at_the_limit(spark):
    now = spark(s0=3, s7=2)
    wait = SlotWait(Session(spark_hearth_executorWait="2min"), 3)
    wait.wait()
    now[0] = 7.0
    words = (
        r"3 ranks need 3 task slots .* the cluster has 2 and got no more within 120 s of waiting "
        r"for executors \(spark\.hearth\.executorWait\)"
    )
    with pytest.raises(HearthError, match=words):
        wait.wait()
    assert now[0] == pytest.approx(127, abs=0.3)


ELASTIC = {"spark_hearth_executorWait": "30s", "spark_hearth_minWorkersWait": "10min"}


def test_a_job_continues_with_fewer_tasks_after_executor_wait(spark):
    now = spark(s0=1, s20=2)
    SlotWait(Session(**ELASTIC), 8, least=2).wait()
    assert now[0] == pytest.approx(30, abs=0.2)


@pytest.mark.parametrize("tasks", [2, 8])
def test_a_job_below_its_minimum_waits_longer_and_reports_it(spark, tasks):
    now, reported = spark(s0=1, s400=2), []
    SlotWait(Session(**ELASTIC), tasks, reported.append, least=2).wait()
    assert now[0] == pytest.approx(400, abs=0.2)
    least = ", 2 at least" if tasks > 2 else ""
    assert reported[0] == f"waiting for executors: 1 of {tasks} slots{least} (0 of 600 s)"
    now, reported = spark(s0=1), []
    words = (
        r"^2 ranks need 2 task slots at the same time, but the cluster has 1 and got no more "
        r"within 600 s of waiting for executors \(spark\.hearth\.minWorkersWait\)"
    )
    with pytest.raises(HearthError, match=words):
        SlotWait(Session(**ELASTIC), tasks, least=2).wait()
    assert now[0] == pytest.approx(600, abs=0.3)


def test_the_default_wait_for_the_minimum_is_an_hour(spark):
    now = spark(s0=0)
    with pytest.raises(HearthError, match="within 3600 s"):
        SlotWait(Session(), 8, least=2).wait()
    assert now[0] == pytest.approx(3600, abs=0.3)


def test_an_ended_shortage_does_not_count_for_the_next(spark):
    now = spark(s0=1, s200=2, s201=1, s402=2)
    wait = SlotWait(Session(), 2)
    assert not wait.look()
    wait.wait()
    now[0] = 201.0
    assert not wait.look()
    now[0] = 401.0
    assert not wait.look()


@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "local[*]", "local"])
def test_no_wait_for_more_slots_than_the_maximum(spark, master):
    now = spark(s0=2)
    session = Session(spark_master=master)
    with pytest.raises(HearthError, match=r"5 ranks need 5 task slots .* the cluster has 2"):
        SlotWait(session, 5).wait()
    assert now[0] == 0


def test_no_wait_if_the_slots_are_unknown(spark):
    now = spark(s0=None)
    SlotWait(Session(), 3).wait()
    assert now[0] == 0


def test_a_session_that_has_ended_gets_no_executors():
    class Ended(Session):
        class _jsc:
            class sc:
                @staticmethod
                def isStopped():
                    return True

    with pytest.raises(HearthError, match="session has ended"):
        SlotWait(Ended(), 1).wait()


@pytest.mark.parametrize(
    ("said", "seconds"), [("90", 90), ("90s", 90), (" 5 m", 300), ("10MIN", 600), ("2h", 7200)]
)
def test_the_wait_uses_sparks_time_syntax(said, seconds):
    assert executor_wait_s(Session(spark_hearth_executorWait=said)) == seconds


@pytest.mark.parametrize("said", ["soon", "-1", "1.5s", "3 days"])
def test_an_invalid_wait_is_refused(said):
    with pytest.raises(HearthError, match=r"spark\.hearth\.executorWait is .*such as 90s"):
        executor_wait_s(Session(spark_hearth_executorWait=said))


@pytest.mark.parametrize(
    ("master", "cpus", "slots"),
    [
        ("local[4]", 1, 4),
        ("local[4, 3]", 2, None),
        ("local[4,3]", 2, 2),
        ("local-cluster[2,1,1024]", 1, 2),
        ("local-cluster[2,5,1024]", 2, 4),
        ("local-cluster[2,1,1024]", Fraction("0.1"), 20),
        ("local[*]", 1, None),
        ("spark://host:7077", 1, None),
        ("yarn", 1, None),
    ],
)
def test_slots_are_counted_by_master(master, cpus, slots):
    assert local_slots(master, cpus) == slots
