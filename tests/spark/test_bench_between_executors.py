"""`hearth bench-collective` between the executors of a session."""

from __future__ import annotations

from hearth.cluster.driver import bench_collective
from hearth.ranks.bench import parsed


def test_executors_report_figures_as_they_measure(spark):
    said = list(bench_collective.measured(spark, 2, parsed("4KB,256KB", "tcp")))
    assert [(each["size"], each["transport"], each["means"]) for each in said] == [
        ("4 KB", "tcp", "tcp"),
        ("256 KB", "tcp", "tcp"),
    ]
    assert all(each["bus_gb_s"] > 0 for each in said)
