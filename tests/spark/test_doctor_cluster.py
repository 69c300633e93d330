"""`hearth doctor` on executors of a session."""

from __future__ import annotations

from hearth import doctor
from hearth.doctor import checks, cluster


def test_executors_are_asked_and_connect_to_each_other(spark):
    survey = cluster.survey(spark, 2)
    assert len(survey.executors) == 2
    for facts in survey.executors:
        assert facts["native"] is facts["driver_problem"] is facts["mesh_problem"] is None
        assert facts["unreachable"] == {}
        assert abs(facts["clock_ahead_s"]) < 60
    found = {finding.check: finding for finding in checks.judge(survey)}
    assert found["executors"].found.startswith("2, on ")
    assert found["hearth"].level == found["between executors"].level == "ok"


def test_executors_that_fail_are_a_finding(spark, monkeypatch):
    monkeypatch.setattr(cluster, "_ask_executors", lambda *given: spark.sql("SELECT nosuch"))
    found = {finding.check: finding for finding in doctor.examine(spark, 2)}
    assert found["executors"].level == "problem" and "nosuch" in found["executors"].found
