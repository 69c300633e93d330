"""A training whose driver YARN restarts finds its own snapshots, and no others."""

from types import SimpleNamespace

import pytest

from hearth.caffe_jobs import run_name
from hearth.caffe_jobs.run_name import RunName


def session(attempt: str | None, application: str = "application_1"):
    """The part of a classic session that a run's name depends on."""
    option = SimpleNamespace(isEmpty=lambda: attempt is None, get=lambda: attempt)
    context = SimpleNamespace(
        applicationId=lambda: application, applicationAttemptId=lambda: option
    )
    java = SimpleNamespace(sc=lambda: context)
    return SimpleNamespace(_jsc=java)


@pytest.fixture
def names(monkeypatch):
    """Returns the names that a newly started driver generates."""

    def of(session, *jobs):
        monkeypatch.setattr(run_name, "_counts", run_name.Counter())
        return [run_name.run_name(session, job) for job in jobs]

    return of


def test_the_next_attempt_of_an_application_gets_the_same_names(names):
    jobs = [{"model": "a"}, {"model": "b"}, {"model": "a"}]
    first, second = names(session("1"), *jobs), names(session("2"), *jobs)
    assert [name.text for name in first] == [name.text for name in second]
    assert len({name.text for name in first}) == 3
    assert (first[0].attempt, second[0].attempt) == (1, 2)
    other = names(session("2", "application_2"), *jobs)
    assert not {name.text for name in first} & {name.text for name in other}


def test_files_that_lie_in_another_container_are_the_same(names, tmp_path, monkeypatch):
    found = []
    for attempt in ("1", "2"):
        container = tmp_path / f"container_{attempt}"
        container.mkdir()
        monkeypatch.chdir(container)
        job = {"solver": {"path": str(container / "solver.prototxt"), "text": "max_iter: 1"}}
        found += names(session(attempt), job)
    assert found[0].text == found[1].text


@pytest.mark.parametrize("spark", [session(None), session("local"), SimpleNamespace()])
def test_a_driver_without_restarts_gets_random_names(names, spark):
    first, second = names(spark, {"model": "a"}), names(spark, {"model": "a"})
    assert first[0].text != second[0].text
    assert first[0].attempt == second[0].attempt == 1


def test_generations_start_above_those_of_earlier_attempts():
    assert [RunName("n", attempt).first_generation(3) for attempt in (1, 2, 3)] == [0, 4, 8]
