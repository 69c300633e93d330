"""The plan of datasets, stored with checkpoints so that a restarted driver uses it again."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hearth.data
from hearth import HearthError
from hearth.cluster.driver.datasets.delivery import Datasets
from hearth.cluster.driver.datasets.stored_plan import StoredPlan


class Driver:
    """The part of a driver's session that file plans depend on."""

    def __init__(self, application, attempt, folder):
        conf = {"spark.app.id": application, "spark.app.attempt.id": attempt}
        self.session, self._folder = SimpleNamespace(conf=conf), str(folder)

    def plan(self, uri):
        """Plans the dataset, and stores the plan."""
        datasets = Datasets.__new__(Datasets)
        datasets._spark = SimpleNamespace(session=None)
        conf = self.session.conf
        datasets._kept = StoredPlan(self._folder, tuple(conf.values()))
        plan = datasets._plan("train", hearth.data.parquet(uri), {}, 2)
        datasets._kept.owners("train", 2, plan.partitions, lambda: plan.owners([frozenset()] * 2))
        return plan


def write(folder, number):
    pq.write_table(pa.table({"x": range(number, number + 10)}), folder / f"{number}.parquet")


def test_a_restarted_driver_uses_the_files_of_the_previous_one(tmp_path):
    rows, kept = tmp_path / "rows", tmp_path / "kept"
    rows.mkdir()
    write(rows, 1)
    write(rows, 2)
    first = Driver("application_1", "1", kept).plan(str(rows))
    write(rows, 0)
    second = Driver("application_1", "2", kept).plan(str(rows))
    assert second.identity == first.identity
    assert Driver("application_1", "3", kept).plan(str(rows)).identity == first.identity
    # Another cluster of the same driver, or another application, uses the current files.
    for application, attempt in (("application_1", "3"), ("application_2", "1"), ("local", "")):
        assert Driver(application, attempt, kept).plan(str(rows)).identity != first.identity


def test_a_file_changed_before_a_driver_restart_is_an_error(tmp_path):
    rows, kept = tmp_path / "rows", tmp_path / "kept"
    rows.mkdir()
    write(rows, 1)
    Driver("application_1", "1", kept).plan(str(rows))
    (rows / "1.parquet").unlink()
    write(rows, 2)
    with pytest.raises(ValueError, match=r"1\.parquet has changed since the run began"):
        Driver("application_1", "2", kept).plan(str(rows))


@pytest.mark.parametrize(
    "datasets",
    [
        [],
        {"train": 5},
        {"train": {"partitions": "4", "owners": {}}},
        {"train": {"partitions": 4, "owners": {"2": [0, 1, 0, 2]}}},
        {"train": {"partitions": 4, "owners": {"2": [0, 1]}}},
    ],
)
def test_a_corrupt_plan_is_named_in_the_error(tmp_path, datasets):
    (tmp_path / "datasets.json").write_text(json.dumps({"version": 1, "datasets": datasets}))
    with pytest.raises(
        HearthError, match=r"datasets\.json is not a valid dataset plan .*: remove it"
    ):
        StoredPlan(str(tmp_path)).owners("train", 2, 4, lambda: [0, 1, 0, 1])


def test_ranks_keep_their_partitions(tmp_path):
    assert StoredPlan(str(tmp_path)).owners("train", 2, 4, lambda: [0, 0, 1, 1]) == [0, 0, 1, 1]
    kept = StoredPlan(str(tmp_path))
    assert kept.partitions("train") == 4
    assert kept.owners("train", 2, 4, lambda: [0, 1, 0, 1]) == [0, 0, 1, 1]
    assert kept.owners("train", 1, 4, lambda: [0] * 4) == [0] * 4
    assert kept.owners("train", 2, 3, lambda: [0, 1, 0]) == [0, 1, 0]  # the dataset has changed


def test_a_frame_reads_the_versions_of_its_tables_that_the_run_had(tmp_path, monkeypatch):
    found, asked = {"file:/rows": "Delta version 3"}, []

    def pinned(frame, before):
        asked.append(before)
        return frame, before or found

    monkeypatch.setattr("hearth.sources.tables.frames.pinned_frame", pinned)
    for _ in range(2):
        kept = StoredPlan(str(tmp_path))
        kept.pinned_frame("train", None)
        kept.owners("train", 2, 4, lambda: [0, 1, 0, 1])
    assert asked == [None, found]
