"""The driver's records of a dataset's partitions over several starts of the nodes."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest

from hearth.cluster.driver.datasets.delivery import Delivery, Plan, _carried_source
from hearth.cluster.driver.plan import named_datasets
from hearth.rows.rank_rows import launch_conf


class Session:
    """A session of Spark Connect with this number of cores."""

    def __init__(self, cores):
        self.settings = {"spark.executor.cores": str(cores)}
        self.conf = self

    def get(self, key, default=None):
        return self.settings.get(key, default)


def test_partitions_of_frames_do_not_depend_on_cores():
    few, many = (launch_conf(Session(cores), 48, [], pieces=48) for cores in (1, 64))
    assert few == many
    assert few["spark.sql.leafNodeDefaultParallelism"] == "48"


class Running:
    """A start of the nodes; records the messages to them."""

    def __init__(self):
        self.sent, self.failures = [], []
        self.broadcast, self.fail = self.sent.append, self.failures.append


def partition(number, rows, digest):
    return {"event": "dataset", "partition": number, "rows": rows, "hash": digest}


def test_a_partition_that_changes_after_a_restart_fails_the_cluster():
    plan, first, second = Plan("train", 2), Running(), Running()
    Delivery(plan, first).note(partition(1, 5, "aa"))
    delivery = Delivery(plan, second)
    delivery.note(partition(0, 4, "bb"))
    delivery.note(partition(1, 5, "cc"))
    assert len(second.failures) == 1
    assert "partition 1 of dataset 'train' had 5 rows with hash aa before" in second.failures[0]
    assert first.failures == [] and len(second.sent) == 1


def test_files_of_a_varying_dataset_persist_only_if_all_partitions_are_known():
    plan = Plan("train", 2, deterministic=False)
    delivery = Delivery(plan, Running())
    delivery.note(partition(0, 5, "aa"))
    assert not plan.keeps() and Plan("train", 2).keeps()
    delivery.note(partition(1, 5, ""))  # only counted, because the rank has returned
    assert not plan.keeps()
    Delivery(plan, Running()).note(partition(1, 5, "bb"))
    assert plan.keeps()


def test_partitions_without_a_task_count_as_empty():
    plan = Plan("train", 2, deterministic=False)
    Delivery(plan, Running()).end(SimpleNamespace(error=None, result=[(0, 4, "aa")]))
    assert plan.known == {0: (4, "aa"), 1: (0, "0" * 16)} and plan.keeps()


def test_totals_are_sent_once_all_partitions_are_known_of_ranks_that_have_returned_too():
    running = Running()
    delivery = Delivery(Plan("train", 2), running)
    delivery.note(partition(0, 4, "aa"))
    delivery.note(partition(1, 3, ""))
    delivery.end(SimpleNamespace(error=None, result=[(0, 4, "aa"), (1, 3, "")]))
    some = {"op": "dataset_counted", "dataset": "train", "counted": [[0, 4, "aa"]]}
    totals = {"op": "dataset_totals", "dataset": "train", "rows": [4, 3], "hashes": ["aa", ""]}
    assert running.sent == [some, totals]


def test_progress_of_a_delivery_is_shown():
    delivery = Delivery(Plan("train", 2), Running())
    assert delivery.line() == "train 0 of 2 partitions (0 rows)"
    delivery.note(partition(1, 1500, "aa"))
    assert delivery.line() == "train 1 of 2 partitions (1,500 rows)"
    delivery.note(partition(0, 5, "bb"))
    assert delivery.line() == ""
    assert Delivery(Plan("train", 2, spool=False), Running()).line() == ""


class OwnSource:
    """A user's source, which lacks select()."""

    def schema(self):
        return pa.schema([("id", pa.int64()), ("day", pa.date32())])


def test_a_column_that_a_users_source_must_leave_out_is_named():
    words = r"'day' of dataset 'train' has the type date32\[day\], .* the batches of OwnSource"
    with pytest.raises(ValueError, match=words):
        _carried_source("train", OwnSource())


@pytest.mark.parametrize("none", [None, {}, []])
def test_empty_datasets_are_none(none):
    assert named_datasets(none) == {}
    with pytest.raises(TypeError, match="datasets is a list, but must be a dict"):
        named_datasets([object()])
